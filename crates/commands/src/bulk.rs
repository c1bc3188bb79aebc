mod breakdown;
mod selected;

use std::time::Duration;

use domain::{Invalid, Status, Timestamp};
use store::{
    BulkChange, BulkOperation, Count, DueEntry, Epoch, Filter, ListQuery, OperationId, OperationState, Order, SEARCH_BUDGET,
    Summary,
};

pub use self::breakdown::BulkBreakdown;
use crate::{BulkWork, CommandError, Commands, bulk_work::Plan, call};

/// The maximum number of timers that are changed while the client waits.
pub const CHANGED_AT_ONCE_MAX: usize = 1_000;
/// How many operations of one key may run at the same time.
pub const OPERATIONS_RUNNING_MAX: usize = 4;
/// How many timers a preview shows.
const EXAMPLES: u32 = 20;
/// A search that has not come to its end by then is left to an operation.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);

/// A change of every timer that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkRequest {
    pub work: BulkWork,
    pub filter: Filter,
    /// When more timers match, the whole request is refused.
    pub expected_max: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BulkAnswer {
    Done {
        changed: u64,
        /// Those that the action does not concern, or that were changed or got another status meanwhile.
        skipped: u64,
    },
    /// There are many: they are changed as background work.
    Started(Box<BulkOperation>),
}

/// What a bulk request would meet.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkPreview {
    pub matched: Count,
    pub by_status: Vec<(Status, u64)>,
    pub examples: Vec<Summary>,
}

impl Commands {
    /// Refuses a due time that no timer may have, as the request itself is refused, whatever matches.
    pub fn check_bulk_work(&self, work: &BulkWork) -> Result<(), Invalid> {
        work.checked(&self.rules, self.clock.now()).map(drop)
    }

    /// What a bulk request with this filter would meet. Changes nothing, and yet takes the right to change.
    pub async fn preview_bulk(&self, filter: &Filter) -> Result<BulkPreview, CommandError> {
        self.check_may_write()?;
        let _search = self.searches.begin(&self.caller).ok_or(CommandError::Searching)?;
        let filter = self.selected(filter, self.clock.now())?;
        // Examples and counts share the time of one search, and what one of them leaves is for the rest.
        let until = tokio::time::Instant::now() + SEARCH_BUDGET;
        let query = ListQuery { limit: EXAMPLES, budget: SEARCH_BUDGET / 2, ..in_order(filter.clone()) };
        let examples = self.find(query).await?.timers;
        let (mut timers, mut is_estimate, mut by_status) = (0, false, Vec::new());
        let mut statuses: Vec<Status> = Status::ALL.into_iter().filter(|status| filter.fits_status(*status)).collect();
        while let Some(status) = statuses.pop() {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let budget = left / u32::try_from(statuses.len() + 1).unwrap_or(u32::MAX);
            let of_status = Filter { status: vec![status], ..filter.clone() };
            let count = self.count_matching(of_status, budget).await?;
            timers += count.timers;
            is_estimate |= count.is_estimate;
            by_status.push((status, count.timers));
        }
        by_status.reverse();
        Ok(BulkPreview { matched: Count { timers, is_estimate }, by_status, examples })
    }

    /// Changes every timer that matches, if there are no more than expected. Timers that are registered meanwhile are left alone, and a
    /// timer that is changed by another request meanwhile keeps that change; one that is claimed or ends meanwhile is skipped. Many are
    /// left to an operation.
    pub async fn bulk(&self, request: &BulkRequest) -> Result<BulkAnswer, CommandError> {
        self.check_may_write()?;
        let now = self.clock.now();
        let work = request.work.checked(&self.rules, now)?;
        let _search = self.searches.begin(&self.caller).ok_or(CommandError::Searching)?;
        let filter = self.selected(&request.filter, now)?;
        let (found, is_all) = self.first_matches(&filter).await?;
        let too_many = || CommandError::TooMany { expected_max: usize::try_from(request.expected_max).unwrap_or(usize::MAX) };
        if found.len() as u64 > request.expected_max {
            return Err(too_many());
        }
        if is_all {
            return self.change_now(&work, &found, now).await;
        }
        let count = self.count_matching(filter.clone(), SEARCH_BUDGET).await?;
        let matched = Count { timers: count.timers.max(found.len() as u64), ..count };
        // An estimate refuses nothing: the operation counts before it changes the first timer.
        if !matched.is_estimate && matched.timers > request.expected_max {
            return Err(too_many());
        }
        self.start(&work, filter, matched, request.expected_max, now).await
    }

    /// The filter, limited to what this caller may know of and to what is there now.
    fn selected(&self, filter: &Filter, now: Timestamp) -> Result<Filter, CommandError> {
        let mut filter = self.narrowed(filter)?;
        let after_now = Timestamp::from_micros(now.as_micros().saturating_add(1));
        filter.created.to = Some(filter.created.to.map_or(after_now, |to| to.min(after_now)));
        Ok(filter)
    }

    /// The timers that match, and whether these are all of them: not if they are many, or if it takes long to find out.
    async fn first_matches(&self, filter: &Filter) -> Result<(Vec<Summary>, bool), CommandError> {
        let until = tokio::time::Instant::now() + SEARCH_TIME_MAX;
        let mut query = ListQuery { limit: CHANGED_AT_ONCE_MAX as u32 + 1, ..in_order(filter.clone()) };
        let mut found = Vec::new();
        loop {
            let page = self.find(query.clone()).await?;
            found.extend(page.timers);
            query.after = page.next;
            if found.len() > CHANGED_AT_ONCE_MAX || (page.next.is_some() && tokio::time::Instant::now() >= until) {
                return Ok((found, false));
            }
            if page.next.is_none() {
                return Ok((found, true));
            }
        }
    }

    async fn change_now(&self, work: &BulkWork, found: &[Summary], now: Timestamp) -> Result<BulkAnswer, CommandError> {
        let plan = self.plan(now, found.len() as u64, now);
        let items: Vec<_> = (0..).zip(found).map(|(rank, timer)| work.item(timer, rank, &plan, now)).collect();
        let changes = call::writing(self.stores.bulk.change_all(&work.action(), &items, None, now)).await?.unwrap_or_default();
        let changed = self.tell(work, &changes);
        Ok(BulkAnswer::Done { changed, skipped: found.len() as u64 - changed })
    }

    async fn start(
        &self,
        work: &BulkWork,
        filter: Filter,
        matched: Count,
        expected_max: u64,
        now: Timestamp,
    ) -> Result<BulkAnswer, CommandError> {
        let operation = BulkOperation {
            id: OperationId(domain::TimerId::random(now)),
            key: self.caller.key_id(),
            by: self.caller_name(),
            work: if matched.is_estimate { work.to_uncounted_text() } else { work.to_text() },
            filter,
            state: OperationState::Running,
            matched: matched.timers,
            expected_max,
            changed: 0,
            skipped: 0,
            errors: 0,
            error: None,
            cursor: None,
            started_at: now,
            finished_at: None,
            epoch: Epoch(0),
        };
        if !call::writing(self.stores.bulk.add_operation(&operation, OPERATIONS_RUNNING_MAX)).await? {
            return Err(CommandError::TooManyOperations);
        }
        self.searches.operation_started();
        Ok(BulkAnswer::Started(Box::new(operation)))
    }

    fn caller_name(&self) -> String {
        match &self.caller {
            domain::Caller::Administrator => "administrator".to_owned(),
            domain::Caller::Holder(key) => key.name.clone(),
        }
    }

    pub(crate) fn plan(&self, started_at: Timestamp, matched: u64, now: Timestamp) -> Plan {
        let latest = self.rules.horizon.max_horizon.map_or(Timestamp::MAX, |horizon| now.saturating_add(horizon));
        Plan { started_at, matched, latest }
    }

    /// Tells the scheduler what is due now, and says how many timers were changed.
    pub(crate) fn tell(&self, work: &BulkWork, changes: &[BulkChange]) -> u64 {
        let due = |change: &BulkChange| match change {
            BulkChange::Due(entry) => Some(*entry),
            BulkChange::Skipped | BulkChange::Unreadable | BulkChange::Changed => None,
        };
        let entries: Vec<DueEntry> = changes.iter().filter_map(due).collect();
        if !entries.is_empty() {
            (self.nudge)(&entries);
        }
        let changed = changes.iter().filter(|change| change.is_change()).count() as u64;
        metrics::counter!("timer_bulk_changed_total", "action" => work.name()).increment(changed);
        changed
    }
}

/// In the order of creation, in which nothing moves while it is changed.
pub(crate) fn in_order(filter: Filter) -> ListQuery {
    ListQuery { filter, order: Order::Ascending, ..ListQuery::default() }
}

#[cfg(test)]
pub(crate) mod tests;
