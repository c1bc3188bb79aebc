//! The statements by which [`store_sql::List`] and [`store_sql::Count`] search, and what their rows mean.

mod parameters;
mod planner;
mod range;
mod statement;

use std::{sync::Arc, time::Duration};

use domain::Namespace;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use store::{Filter, ListQuery, Sort};
use store_sql::{Answer, Few, Line, Source, Tally};

use self::parameters::Parameters;
use crate::{
    connector::Connector,
    failure::{Failure, Step},
    namespace_indexes::NamespaceIndexes,
    rows::Fields,
};

const QUERY_CANCELED: &str = "57014";

#[derive(Debug, Clone)]
pub struct Finder {
    pub shards: u16,
    pub namespace_indexes: Arc<NamespaceIndexes>,
}

impl store_sql::Finder for Finder {
    type Driver = Connector;

    fn is_indexed(&self, namespace: &Namespace, sort: Sort) -> bool {
        self.namespace_indexes.know(namespace, sort)
    }

    async fn look_for_indexes(&self, session: &mut PgConnection, namespaces: &[Namespace], sort: Sort) -> Result<(), Failure> {
        if namespaces.iter().all(|namespace| self.is_indexed(namespace, sort)) {
            return Ok(());
        }
        self.namespace_indexes.look(session, sort).await.or_not_done()
    }

    async fn find(
        &self,
        session: &mut PgConnection,
        source: &Source,
        from: &ListQuery,
        rows_max: u64,
    ) -> Result<Answer, Failure> {
        answer(from, &statement::statement(source, from, self.shards, rows_max).fetch(session).await?)
    }

    async fn expected_few(&self, session: &mut PgConnection, few: &Few) -> Result<Option<u64>, Failure> {
        if matches!(few, Few::Ids(_) | Few::Statuses(_)) {
            return Ok(None);
        }
        let (text, parameters) = statement::few(few, self.shards);
        planner::expected(session, &text, parameters).await.map(Some)
    }

    async fn tally(&self, session: &mut PgConnection, source: &Source, from: &ListQuery) -> Result<Tally, Failure> {
        let counted = statement::count(source, from, self.shards).fetch(session).await?;
        let found = counted.rows.first().map_or(Ok(0), |row| row.try_get::<i64, _>("n")).or_not_done()?.unsigned_abs();
        Ok(Tally { found, looked_at: counted.looked_at, last: counted.last })
    }

    async fn counted(&self, session: &mut PgConnection, text: String, within: Option<Duration>) -> Result<Option<u64>, Failure> {
        if let Some(budget) = within {
            let timeout = format!("SET statement_timeout = {}", budget.as_millis().max(1));
            sqlx::raw_sql(AssertSqlSafe(timeout)).execute(&mut *session).await.or_not_done()?;
        }
        let counted = sqlx::query_scalar::<_, i64>(AssertSqlSafe(text)).fetch_one(&mut *session).await.or_not_done();
        if within.is_some() {
            sqlx::raw_sql("RESET statement_timeout").execute(session).await.or_not_done()?;
        }
        match counted {
            Err(failure) if within.is_some() && failure.error.to_string().contains(QUERY_CANCELED) => Ok(None),
            counted => counted.map(|counted| Some(counted.unsigned_abs())),
        }
    }

    async fn expected(&self, session: &mut PgConnection, filter: &Filter, rows: &[String]) -> Result<u64, Failure> {
        let mut all = 0;
        for rows in rows {
            all += expected(session, &filter.namespaces, rows).await?;
        }
        Ok(all)
    }

    async fn expected_definitions(
        &self,
        session: &mut PgConnection,
        query: &ListQuery,
        namespaces: &[Namespace],
    ) -> Result<u64, Failure> {
        let (text, parameters) = statement::walked(query, namespaces);
        planner::expected(session, &text, parameters).await
    }
}

/// How many rows of a narrow table the planner expects, of the namespaces that are asked for.
async fn expected(session: &mut PgConnection, namespaces: &[Namespace], rows: &str) -> Result<u64, Failure> {
    if namespaces.is_empty() {
        return plan(session, format!("SELECT FROM {rows} AND $1::text[] = '{{}}'"), namespaces).await;
    }
    let (table, condition) = rows.split_once(" t WHERE ").unwrap_or((rows, "true"));
    let text = format!("SELECT FROM {table} t JOIN definition f ON f.id = t.id WHERE {condition} AND f.namespace = ANY ($1)");
    plan(session, text, namespaces).await
}

/// How many rows the planner expects of a statement about namespaces.
async fn plan(session: &mut PgConnection, statement: String, namespaces: &[Namespace]) -> Result<u64, Failure> {
    let mut parameters = Parameters::default();
    parameters.bind(namespaces.iter().map(|namespace| namespace.as_str().to_owned()).collect::<Vec<_>>());
    planner::expected(session, &statement, parameters).await
}

fn answer(query: &ListQuery, found: &statement::Found) -> Result<Answer, Failure> {
    let statement::Found { rows, rows_max, looked_at, last, total } = found;
    let lines = rows.iter().map(|row| Line::of_row(query, &Fields(row))).collect::<Result<_, _>>()?;
    Ok(Answer { lines, rows_max: *rows_max, looked_at: *looked_at, last: *last, total: *total })
}
