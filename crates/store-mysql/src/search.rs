//! The statements by which [`store_sql::List`] and [`store_sql::Count`] search, and what their rows mean.

mod conditions;
mod few;
mod parameters;
mod statement;

use std::time::Duration;

use domain::Namespace;
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow};
use store::{Filter, ListQuery, Sort};
use store_sql::{Answer, Line, Source, Tally};

use crate::{
    connector::Connector,
    failure::{Failure, Step, number},
    rows::Fields,
    session::Session,
};

/// A statement took longer than it may: MariaDB, MySQL.
const OUT_OF_TIME: [u16; 2] = [1969, 3024];

#[derive(Debug, Clone, Copy)]
pub struct Finder {
    pub shards: u16,
}

impl store_sql::Finder for Finder {
    type Driver = Connector;

    fn is_indexed(&self, _: &Namespace, sort: Sort) -> bool {
        sort == Sort::CreatedAt
    }

    async fn find(&self, session: &mut Session, source: &Source, from: &ListQuery, rows_max: u64) -> Result<Answer, Failure> {
        answer(from, &statement::statement(source, from, self.shards, rows_max).fetch(session).await?)
    }

    async fn tally(&self, session: &mut Session, source: &Source, from: &ListQuery) -> Result<Tally, Failure> {
        let (found, looked_at, last) = statement::count(source, from, self.shards).count(session).await?;
        Ok(Tally { found, looked_at, last })
    }

    /// Each of the two kinds of server reads its own limit, and takes that of the other for a comment.
    async fn counted(&self, session: &mut Session, text: String, within: Option<Duration>) -> Result<Option<u64>, Failure> {
        let text = within.map_or(text.clone(), |budget| {
            let (seconds, millis) = (budget.as_secs_f64().max(0.001), budget.as_millis().max(1));
            let text = text.replacen("SELECT", &format!("SELECT /*+ MAX_EXECUTION_TIME({millis}) */"), 1);
            format!("/*M!100100 SET STATEMENT max_statement_time = {seconds:.3} FOR */ {text}")
        });
        match sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(session).await {
            Err(error) if number(&error).is_some_and(|number| OUT_OF_TIME.contains(&number)) => Ok(None),
            row => row.and_then(|row| row.try_get::<i64, _>("n")).map(|counted| Some(counted.unsigned_abs())).or_not_done(),
        }
    }

    async fn expected(&self, session: &mut Session, filter: &Filter, rows: &[String]) -> Result<u64, Failure> {
        let mut all = 0;
        for rows in rows {
            all += expected(session, rows).await?;
        }
        if filter.namespaces.is_empty() {
            return Ok(all);
        }
        Ok(all.min(expected_of_namespaces(session, &filter.namespaces, "").await?))
    }

    async fn expected_definitions(
        &self,
        session: &mut Session,
        query: &ListQuery,
        namespaces: &[Namespace],
    ) -> Result<u64, Failure> {
        let (time, period) = match query.sort {
            Sort::CreatedAt => ("created_at", query.filter.created),
            Sort::ExecuteAt => ("execute_at", query.filter.due),
        };
        let from = period.from.map_or_else(String::new, |from| format!(" AND t.{time} >= {}", from.as_micros()));
        let to = period.to.map_or_else(String::new, |to| format!(" AND t.{time} < {}", to.as_micros()));
        let within = format!("{from}{to}");
        if namespaces.is_empty() {
            return expected(session, &format!("definition t WHERE TRUE{within}")).await;
        }
        expected_of_namespaces(session, namespaces, &within).await
    }
}

/// How many rows the planner expects to look at.
async fn expected(session: &mut Session, rows: &str) -> Result<u64, Failure> {
    let text = format!("EXPLAIN SELECT 1 FROM {rows}");
    let plan = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(session).await.or_not_done()?;
    Ok(plan.first().map_or(0, rows_of_plan))
}

/// The same of the timers of these namespaces, within a period.
async fn expected_of_namespaces(session: &mut Session, namespaces: &[Namespace], within: &str) -> Result<u64, Failure> {
    let marks = vec!["?"; namespaces.len()].join(", ");
    let text = format!("EXPLAIN SELECT 1 FROM definition t WHERE t.namespace IN ({marks}){within}");
    let mut query = sqlx::query(AssertSqlSafe(text));
    for namespace in namespaces {
        query = query.bind(namespace.as_str().as_bytes());
    }
    let plan = query.fetch_all(session).await.or_not_done()?;
    Ok(plan.first().map_or(0, rows_of_plan))
}

/// The servers differ in the type of this column, and leave it empty where they know that there is nothing.
fn rows_of_plan(row: &MySqlRow) -> u64 {
    row.try_get_unchecked::<Option<i64>, _>("rows").ok().flatten().map_or(0, i64::unsigned_abs)
}

fn answer(query: &ListQuery, found: &statement::Found) -> Result<Answer, Failure> {
    let statement::Found { rows, rows_max, looked_at, last } = found;
    let lines = rows.iter().map(|row| Line::of_row(query, &Fields(row))).collect::<Result<_, _>>()?;
    Ok(Answer { lines, rows_max: *rows_max, looked_at: *looked_at, last: *last, total: None })
}
