//! How many timers match: counted as far as the budget goes, beyond it estimated.
//!
//! ```text
//!   by status alone    the narrow tables, up to a limit ──▶ exactly
//!   anything else      stretch by stretch, as a list goes ──▶ exactly, if that comes to the end in time
//!   otherwise          what the planner believes, or as many as were found among those that were looked at
//! ```

use std::time::Duration;

use domain::{Namespace, Status};
use sqlx::{AssertSqlSafe, PgConnection};
use store::{COUNTED_MAX, Cursor, Filter, ListQuery};
use store_sql::Call;

use crate::{
    failure::{Failure, Step},
    search::{self, FEW, Few, Pace, Source},
    sessions::Sessions,
};

/// So many are counted whatever the budget.
const COUNTED_FIRST: u64 = 10_000;
const QUERY_CANCELED: &str = "57014";

/// How many timers match.
pub struct Count {
    pub filter: Filter,
    pub budget: Duration,
    pub shards: u16,
}

impl Call<Sessions> for Count {
    type Answer = store::Count;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<store::Count, Failure> {
        if self.filter == (Filter { status: self.filter.status.clone(), ..Filter::default() }) {
            return self.by_status(session).await;
        }
        let counted = self.walk(session).await?;
        if counted.is_all {
            return Ok(store::Count::exactly(counted.found));
        }
        let estimate = if self.filter.is_by_status_and_namespace() {
            self.estimate(session).await?
        } else {
            let all = rows_of_plan(session, "definition f").await?;
            u64::try_from(u128::from(counted.found) * u128::from(all) / u128::from(counted.looked_at.max(1))).unwrap_or(u64::MAX)
        };
        Ok(store::Count::about(estimate.max(counted.found)))
    }
}

/// What a walk has counted.
#[derive(Default)]
struct Counted {
    found: u64,
    looked_at: u64,
    is_all: bool,
}

impl Count {
    /// A few of them first, however long that takes; then up to the limit, if there is time for it.
    async fn by_status(&self, session: &mut PgConnection) -> Result<store::Count, Failure> {
        let counted = self.capped(session, COUNTED_FIRST + 1).await?;
        if counted <= COUNTED_FIRST {
            return Ok(store::Count::exactly(counted));
        }
        let timeout = format!("SET statement_timeout = {}", self.budget.as_millis().max(1));
        sqlx::raw_sql(AssertSqlSafe(timeout)).execute(&mut *session).await.or_not_done()?;
        let capped = self.capped(session, COUNTED_MAX + 1).await;
        sqlx::raw_sql("RESET statement_timeout").execute(&mut *session).await.or_not_done()?;
        match capped {
            Ok(counted) if counted <= COUNTED_MAX => return Ok(store::Count::exactly(counted)),
            Ok(_) => {}
            Err(failure) if failure.error.to_string().contains(QUERY_CANCELED) => {}
            Err(failure) => return Err(failure),
        }
        Ok(store::Count::about(self.estimate(session).await?.max(counted)))
    }

    /// Every timer is either due, paused or finished, and those rows are narrow.
    async fn capped(&self, session: &mut PgConnection, most: u64) -> Result<u64, Failure> {
        let tables: Vec<_> =
            whereabouts(&self.filter.status).into_iter().map(|rows| format!("(SELECT FROM {rows} LIMIT {most})")).collect();
        let text = format!("SELECT count(*) FROM (SELECT FROM ({}) AS t LIMIT {most}) AS counted", tables.join(" UNION ALL "));
        let counted: i64 = sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(session).await.or_not_done()?;
        Ok(counted.unsigned_abs())
    }

    /// Counts stretch by stretch until the end, or until the budget is used up.
    async fn walk(&self, session: &mut PgConnection) -> Result<Counted, Failure> {
        let mut query = ListQuery { filter: self.filter.clone(), limit: u32::MAX, ..ListQuery::default() };
        let (first, later) = Few::of(&query.filter, query.sort);
        for few in first.into_iter().chain(later) {
            let counted = self.step(session, &Source::Few(few), &query).await?.0;
            if counted.looked_at <= FEW {
                return Ok(Counted { is_all: true, ..counted });
            }
        }
        let mut all = Counted::default();
        let mut pace = Pace::new(self.budget);
        loop {
            let source = Source::in_order(&query, pace.length());
            let (counted, last) = self.step(session, &source, &query).await?;
            all.found += counted.found;
            all.looked_at += counted.looked_at;
            all.is_all = counted.is_all;
            query.after = last.or(query.after);
            if all.is_all || !pace.next(counted.looked_at) {
                return Ok(all);
            }
        }
    }

    async fn step(
        &self,
        session: &mut PgConnection,
        source: &Source,
        query: &ListQuery,
    ) -> Result<(Counted, Option<Cursor>), Failure> {
        if search::has_large_texts(&self.filter) {
            return self.look(session, source, query).await;
        }
        let answer = search::count(source, query, self.shards).fetch(session).await?;
        let found = answer.rows.first().map_or(Ok(0), |row| answer.place_of(row))?;
        let is_all = answer.looked_at < source.length();
        Ok((Counted { found, looked_at: answer.looked_at, is_all }, answer.last))
    }

    /// Texts that only this program can read come a part at a time.
    async fn look(
        &self,
        session: &mut PgConnection,
        source: &Source,
        query: &ListQuery,
    ) -> Result<(Counted, Option<Cursor>), Failure> {
        let mut search = search::Search::new(query, self.shards);
        let looked_at = if let Source::Few(few) = source {
            let is_few = search.few(session, std::slice::from_ref(few)).await?;
            if is_few { search.scanned().min(FEW) } else { FEW + 1 }
        } else {
            search.stretch(session, source.clone()).await?
        };
        Ok((Counted { found: search.found(), looked_at, is_all: search.is_over() }, search.after()))
    }

    /// What the planner thinks of the whole.
    async fn estimate(&self, session: &mut PgConnection) -> Result<u64, Failure> {
        let namespaces: Vec<_> = self.filter.namespaces.iter().map(Namespace::as_str).collect();
        let mut all = 0;
        for rows in whereabouts(&self.filter.status) {
            all += if namespaces.is_empty() {
                rows_of_plan(session, &rows).await?
            } else {
                let quoted: Vec<_> = namespaces.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
                let (table, condition) = rows.split_once(" t WHERE ").unwrap_or((&rows, "true"));
                let joined = format!("{table} t JOIN definition f ON f.id = t.id WHERE {condition}");
                rows_of_plan(session, &format!("{joined} AND f.namespace IN ({})", quoted.join(", "))).await?
            };
        }
        Ok(all)
    }
}

/// The narrow tables with the rows of these statuses. The finished ones first: after a crowd was fired, `due` is a large file with
/// little in it.
fn whereabouts(statuses: &[Status]) -> Vec<String> {
    let asks = |status: Status| statuses.is_empty() || statuses.contains(&status);
    let ended: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_finished() && asks(*status)).collect();
    let mut rows: Vec<_> = ended.iter().map(|status| format!("outcome t WHERE t.status = '{status}'")).collect();
    if ended.len() == Status::ALL.iter().filter(|status| status.is_finished()).count() {
        rows = vec!["outcome t WHERE true".to_owned()];
    }
    if asks(Status::Paused) {
        rows.push("paused t WHERE true".to_owned());
    }
    rows.extend(match (asks(Status::Pending), asks(Status::Executing)) {
        (true, true) => Some("due t WHERE true".to_owned()),
        (true, false) => Some("due t WHERE t.claim IS NULL".to_owned()),
        (false, true) => Some("due t WHERE t.claim IS NOT NULL".to_owned()),
        (false, false) => None,
    });
    rows
}

async fn rows_of_plan(session: &mut PgConnection, rows: &str) -> Result<u64, Failure> {
    let text = format!("EXPLAIN SELECT FROM {rows}");
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(session).await.or_not_done()?;
    Ok(plan.first().and_then(|line| expected_rows(line)).unwrap_or(0))
}

/// How many rows a line of a plan expects: `Seq Scan on due t  (cost=0.00..7.28 rows=328 width=0)`.
fn expected_rows(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" rows=")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_tells_how_many_rows_it_expects() {
        let join = "Hash Join  (cost=16.05..33.33 rows=5000123 width=0)";
        for (line, rows) in
            [(join, Some(5_000_123)), ("Result  (cost=0.00..0.01 rows=1 width=4)", Some(1)), ("  Filter: true", None)]
        {
            assert_eq!(expected_rows(line), rows, "{line}");
        }
    }
}
