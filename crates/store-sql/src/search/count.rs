//! How many timers match: counted as far as the budget goes, beyond it estimated.
//!
//! ```text
//!   by status alone    the narrow tables, up to a limit ──▶ exactly
//!   anything else      stretch by stretch, as a list goes ──▶ exactly, if that comes to the end in time
//!   otherwise          what the planner believes, or as many as were found among those that were looked at
//! ```

use std::time::Duration;

use domain::{Namespace, Status};
use store::{COUNTED_MAX, Cursor, Filter, ListQuery, Sort};

use super::{FEW, Few, Finder, Pace, Search, Session, Source, by_likelihood, has_large_texts};
use crate::{Call, Failure};

/// The number of timers that are counted whatever the budget.
const COUNTED_FIRST: u64 = 1_000;

/// The time that it may take to find out that there are not few; with a smaller budget, that is tried only where few are likely.
const FEW_TIME: Duration = Duration::from_millis(50);

/// How many timers match.
#[derive(Debug)]
pub struct Count<F> {
    pub finder: F,
    pub filter: Filter,
    pub budget: Duration,
}

/// What was counted of a source.
#[derive(Debug, Default)]
pub struct Tally {
    pub found: u64,
    pub looked_at: u64,
    /// The last one that was looked at.
    pub last: Option<Cursor>,
}

/// What a walk has counted.
#[derive(Default)]
struct Counted {
    found: u64,
    looked_at: u64,
    is_all: bool,
}

impl<F: Finder> Call<F::Driver> for Count<F> {
    type Answer = store::Count;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session<F>) -> Result<store::Count, Failure> {
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

impl<F: Finder> Count<F> {
    /// A few of them first, however long that takes; then up to the limit, if there is time for it.
    async fn by_status(&self, session: &mut Session<F>) -> Result<store::Count, Failure> {
        let counted = self.finder.counted(session, self.capped(COUNTED_FIRST + 1), None).await?.unwrap_or_default();
        if counted <= COUNTED_FIRST {
            return Ok(store::Count::exactly(counted));
        }
        match self.finder.counted(session, self.capped(COUNTED_MAX + 1), Some(self.budget)).await? {
            Some(counted) if counted <= COUNTED_MAX => Ok(store::Count::exactly(counted)),
            _ => Ok(store::Count::about(self.estimate(session).await?.max(counted))),
        }
    }

    /// Every timer is either due, paused or finished, and those rows are narrow.
    fn capped(&self, most: u64) -> String {
        let tables: Vec<_> =
            whereabouts(&self.filter.status).into_iter().map(|rows| format!("(SELECT 1 FROM {rows} LIMIT {most})")).collect();
        format!("SELECT COUNT(*) AS n FROM (SELECT 1 FROM ({}) AS t LIMIT {most}) AS counted", tables.join(" UNION ALL "))
    }

    /// Counts stretch by stretch until the end, or until the budget is used up.
    async fn walk(&self, session: &mut Session<F>) -> Result<Counted, Failure> {
        let mut query = self.query(session).await?;
        let is_indexed = |namespace: &Namespace, sort| self.finder.is_indexed(namespace, sort);
        let (first, later) = Few::of(&query.filter, query.sort, is_indexed);
        let is_worth =
            !later.is_empty() && (self.budget >= FEW_TIME || is_few_likely(&self.finder, session, &self.filter.status).await?);
        let (mut first, unlikely) = by_likelihood(&self.finder, session, first).await?;
        if self.budget >= FEW_TIME {
            first.extend(unlikely);
        }
        if query.sort == Sort::ExecuteAt {
            let due = Few::Due(query.filter.due);
            let expected = self.finder.expected_few(session, &due).await?;
            first.extend(expected.is_none_or(|expected| expected <= COUNTED_FIRST).then_some(due));
        }
        for few in first.into_iter().chain(later.into_iter().filter(|_| is_worth)) {
            let counted = self.step(session, &Source::Few(few), &query).await?.0;
            if counted.looked_at <= FEW {
                return Ok(Counted { is_all: true, ..counted });
            }
        }
        let mut all = Counted::default();
        let mut pace = Pace::new(self.budget);
        loop {
            let source = Source::in_order(&query, pace.length(), is_indexed);
            let (counted, last) = self.step(session, &source, &query).await?;
            all.found += counted.found;
            all.looked_at += counted.looked_at;
            all.is_all = counted.is_all;
            query.after = last.or(query.after);
            if all.is_all || !pace.next(counted.looked_at, u64::MAX) {
                return Ok(all);
            }
        }
    }

    async fn step(
        &self,
        session: &mut Session<F>,
        source: &Source,
        query: &ListQuery,
    ) -> Result<(Counted, Option<Cursor>), Failure> {
        if has_large_texts(&self.filter) {
            return self.look(session, source, query).await;
        }
        let Tally { found, looked_at, last } = self.finder.tally(session, source, query).await?;
        Ok((Counted { found, looked_at, is_all: looked_at < source.length() }, last))
    }

    /// Texts that only this program can read come a part at a time.
    async fn look(
        &self,
        session: &mut Session<F>,
        source: &Source,
        query: &ListQuery,
    ) -> Result<(Counted, Option<Cursor>), Failure> {
        let mut search = Search::new(&self.finder, query);
        let looked_at = if let Source::Few(few) = source {
            let is_few = search.few(session, std::slice::from_ref(few)).await?;
            if is_few { search.page.scanned.min(FEW) } else { FEW + 1 }
        } else {
            search.stretch(session, source.clone()).await?
        };
        Ok((Counted { found: search.page.count() as u64, looked_at, is_all: search.is_over }, search.after))
    }

    /// Along the time that is asked for, where an index has it: a walk along the other one meets few of the period.
    async fn query(&self, session: &mut Session<F>) -> Result<ListQuery, Failure> {
        let Filter { created, due, namespaces, .. } = &self.filter;
        let mut query = ListQuery { filter: self.filter.clone(), limit: u32::MAX, ..ListQuery::default() };
        if created.is_always() && !due.is_always() {
            query.sort = Sort::ExecuteAt;
            self.finder.look_for_indexes(session, namespaces, query.sort).await?;
            let source = Source::in_order(&query, 1, |namespace, sort| self.finder.is_indexed(namespace, sort));
            if namespaces.is_empty() || matches!(source, Source::OfNamespaces { .. }) {
                return Ok(query);
            }
            query.sort = Sort::CreatedAt;
        }
        self.finder.look_for_indexes(session, namespaces, query.sort).await?;
        Ok(query)
    }

    /// How many timers a walk to the end would look at: those of the period and of the namespaces along which it goes.
    async fn walked_in_all(&self, session: &mut Session<F>) -> Result<u64, Failure> {
        let query = self.query(session).await?;
        let namespaces = match Source::in_order(&query, 1, |namespace, sort| self.finder.is_indexed(namespace, sort)) {
            Source::OfNamespaces { namespaces, .. } => namespaces,
            _ => Vec::new(),
        };
        self.finder.expected_definitions(session, &query, &namespaces).await
    }

    /// What the planner thinks of the whole.
    async fn estimate(&self, session: &mut Session<F>) -> Result<u64, Failure> {
        self.finder.expected(session, &self.filter, &whereabouts(&self.filter.status)).await
    }
}

/// Whether the planner believes that few timers have these statuses, so that it is worth fetching them. It may be wrong by a factor.
pub async fn is_few_likely<F: Finder>(finder: &F, session: &mut Session<F>, statuses: &[Status]) -> Result<bool, Failure> {
    let in_any_namespace = Filter { status: statuses.to_vec(), ..Filter::default() };
    Ok(finder.expected(session, &in_any_namespace, &whereabouts(statuses)).await? <= 4 * FEW)
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
