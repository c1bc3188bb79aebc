//! How many timers match: counted as far as the budget goes, beyond it estimated.
//!
//! ```text
//!   by status alone    the narrow tables, up to a limit ──▶ exactly
//!   anything else      stretch by stretch, as a list goes ──▶ exactly, if that comes to the end in time
//!   otherwise          what the planner believes, or as many as were found among those that were looked at
//! ```

use std::time::Duration;

use domain::{Namespace, Status};
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow};
use store::{COUNTED_MAX, Cursor, Filter, ListQuery};
use store_sql::Call;

use crate::{
    failure::{Failure, Step, number},
    search::{self, FEW, Few, Pace, Source},
    session::Session,
    sessions::Sessions,
};

/// So many are counted whatever the budget.
const COUNTED_FIRST: u64 = 1_000;
/// A statement took longer than it may: MariaDB, MySQL.
const OUT_OF_TIME: [u16; 2] = [1969, 3024];

/// How many timers match.
pub struct Count {
    pub filter: Filter,
    pub budget: Duration,
    pub shards: u16,
}

impl Call<Sessions> for Count {
    type Answer = store::Count;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<store::Count, Failure> {
        // The narrow table of those that are due does not tell which of a million are executing.
        let is_in_narrow_tables = !asks_only_for_executing(&self.filter.status);
        if is_in_narrow_tables && self.filter == (Filter { status: self.filter.status.clone(), ..Filter::default() }) {
            return self.by_status(session).await;
        }
        let counted = self.walk(session).await?;
        if counted.is_all {
            return Ok(store::Count::exactly(counted.found));
        }
        let estimate = if self.filter.is_by_status_and_namespace() {
            self.estimate(session).await?
        } else {
            let all = self.walked_in_all(session).await?;
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
    async fn by_status(&self, session: &mut Session) -> Result<store::Count, Failure> {
        let counted = self.capped(session, COUNTED_FIRST + 1).await?;
        if counted <= COUNTED_FIRST {
            return Ok(store::Count::exactly(counted));
        }
        match self.capped_within(session, COUNTED_MAX + 1).await? {
            Some(counted) if counted <= COUNTED_MAX => Ok(store::Count::exactly(counted)),
            _ => Ok(store::Count::about(self.estimate(session).await?.max(counted))),
        }
    }

    /// Every timer is either due, paused or finished, and those rows are narrow.
    async fn capped(&self, session: &mut Session, most: u64) -> Result<u64, Failure> {
        let text = format!("SELECT {}", self.capped_text(most));
        counted(&sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(session).await.or_not_done()?)
    }

    /// The same; `None` where it takes longer than the budget. Each of the two kinds of server reads its own limit, and takes that of the other
    /// for a comment.
    async fn capped_within(&self, session: &mut Session, most: u64) -> Result<Option<u64>, Failure> {
        let (capped, millis) = (self.capped_text(most), self.budget.as_millis().max(1));
        let seconds = self.budget.as_secs_f64().max(0.001);
        let text = format!(
            "/*M!100100 SET STATEMENT max_statement_time = {seconds:.3} FOR */ SELECT /*+ MAX_EXECUTION_TIME({millis}) */ {capped}"
        );
        match sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(session).await {
            Err(error) if number(&error).is_some_and(|number| OUT_OF_TIME.contains(&number)) => Ok(None),
            row => counted(&row.or_not_done()?).map(Some),
        }
    }

    fn capped_text(&self, most: u64) -> String {
        let tables: Vec<_> =
            whereabouts(&self.filter.status).into_iter().map(|rows| format!("(SELECT 1 FROM {rows} LIMIT {most})")).collect();
        format!("COUNT(*) AS n FROM (SELECT 1 FROM ({}) AS t LIMIT {most}) AS counted", tables.join(" UNION ALL "))
    }

    /// Counts stretch by stretch until the end, or until the budget is used up.
    async fn walk(&self, session: &mut Session) -> Result<Counted, Failure> {
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
        session: &mut Session,
        source: &Source,
        query: &ListQuery,
    ) -> Result<(Counted, Option<Cursor>), Failure> {
        if search::has_large_texts(&self.filter) {
            return self.look(session, source, query).await;
        }
        let (found, looked_at, last) = search::count(source, query, self.shards).count(session).await?;
        Ok((Counted { found, looked_at, is_all: looked_at < source.length() }, last))
    }

    /// Texts that only this program can read come a part at a time.
    async fn look(
        &self,
        session: &mut Session,
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

    /// How many timers a walk to the end would look at: those of the period and of the namespaces along which it goes.
    async fn walked_in_all(&self, session: &mut Session) -> Result<u64, Failure> {
        let query = ListQuery { filter: self.filter.clone(), ..ListQuery::default() };
        if let Source::OfNamespaces { namespaces, .. } = Source::in_order(&query, 1) {
            return expected_of_namespaces(session, &namespaces).await;
        }
        let from = self.filter.created.from.map_or_else(String::new, |from| format!(" AND created_at >= {}", from.as_micros()));
        let to = self.filter.created.to.map_or_else(String::new, |to| format!(" AND created_at < {}", to.as_micros()));
        expected(session, &format!("definition t WHERE TRUE{from}{to}")).await
    }

    /// What the planner thinks of the whole.
    async fn estimate(&self, session: &mut Session) -> Result<u64, Failure> {
        let mut all = 0;
        for rows in whereabouts(&self.filter.status) {
            all += expected(session, &rows).await?;
        }
        if self.filter.namespaces.is_empty() {
            return Ok(all);
        }
        Ok(all.min(expected_of_namespaces(session, &self.filter.namespaces).await?))
    }
}

fn counted(row: &MySqlRow) -> Result<u64, Failure> {
    row.try_get::<i64, _>("n").map(i64::unsigned_abs).or_not_done()
}

/// How many rows the planner expects to look at.
async fn expected(session: &mut Session, rows: &str) -> Result<u64, Failure> {
    let text = format!("EXPLAIN SELECT 1 FROM {rows}");
    let plan = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(session).await.or_not_done()?;
    Ok(plan.first().map_or(0, rows_of_plan))
}

async fn expected_of_namespaces(session: &mut Session, namespaces: &[Namespace]) -> Result<u64, Failure> {
    let marks = vec!["?"; namespaces.len()].join(", ");
    let text = format!("EXPLAIN SELECT 1 FROM definition t WHERE t.namespace IN ({marks})");
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

/// Whether timers that wait to be delivered are left out, and those that are being delivered are not.
fn asks_only_for_executing(statuses: &[Status]) -> bool {
    statuses.contains(&Status::Executing) && !statuses.contains(&Status::Pending)
}

/// The narrow tables with the rows of these statuses. The finished ones first: after a crowd was fired, `due` is a large file with
/// little in it.
fn whereabouts(statuses: &[Status]) -> Vec<String> {
    let asks = |status: Status| statuses.is_empty() || statuses.contains(&status);
    let ended: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_finished() && asks(*status)).collect();
    let mut rows: Vec<_> = ended.iter().map(|status| format!("outcome t WHERE t.status = '{status}'")).collect();
    if ended.len() == Status::ALL.iter().filter(|status| status.is_finished()).count() {
        rows = vec!["outcome t WHERE TRUE".to_owned()];
    }
    if asks(Status::Paused) {
        rows.push("paused t WHERE TRUE".to_owned());
    }
    rows.extend(match (asks(Status::Pending), asks(Status::Executing)) {
        (true, true) => Some("due t WHERE TRUE".to_owned()),
        (true, false) => Some("due t WHERE t.claim IS NULL".to_owned()),
        (false, true) => Some("due t WHERE t.claim IS NOT NULL".to_owned()),
        (false, false) => None,
    });
    rows
}
