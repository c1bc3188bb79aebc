//! Operations: bulk changes that are carried out as background work, page by page, and survive the node that carries them out.
//!
//! ```text
//!   take, under a lease ──▶ count, where that takes long ──▶ search those that match after the cursor ◀── all are changed ──┐
//!        ▲                                                      │                                                         │
//!        │                            ┌─────────────────────────▶ change_all: the next few and the new cursor, one commit ──┤
//!        │                            └──────────── pause: longer beside many calls ◀───────────────────────────────────────┤
//!        └── the time slice is over, or an outcome is unknown: another operation may be first ◀─────────────────────────────┘
//! ```

mod leased;
mod matches;
mod pace;

use std::{future::Future, time::Duration};

use domain::{Span, Timestamp};
use store::{BulkCounts, BulkOperation, ListQuery, OperationId, OperationState, Progress, StoreError, StoreResult};
use tokio::time::Instant;

pub(crate) use self::pace::{Spent, pause};
use self::{
    leased::{Counting, LEASE, LeasedOperation, processed, progress},
    matches::Matches,
    pace::{next_page, page_limits},
};
use crate::{
    BulkWork, CommandError, Commands,
    bulk::in_order,
    call,
    call_rate::{CallCount, CallRate},
};

/// How many operations one answer shows.
const SHOWN_MAX: usize = 100;
/// How many are read at a time to find those.
const READ_AT_ONCE: usize = 100;
/// How many timers are counted at a time.
const COUNTED_AT_ONCE: u32 = 1_000;
/// How often the lease is renewed while nothing but counting is done.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// How often is looked for operations that no node carries out.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
const PURGED_AT_ONCE: usize = 1_000;
/// The number of calls a second from which operations give way. A rare call that meets a page waits for a millisecond or two.
const CALLS_PER_SECOND_MIN: f64 = 50.0;
/// Why an operation fails that met more timers than its client expects.
const TOO_MANY: &str = "more timers match than expected_max";
/// Why an operation fails that was started by a program with further actions.
const NOT_UNDERSTOOD: &str = "it was started by a later version, and cannot be understood";
/// Why an operation fails that meets damage which is not that of single timers.
const UNREADABLE: &str = "stored data that it needs cannot be read; the log of the service says which";

impl Commands {
    /// The latest operations that this caller may know of.
    pub async fn operations(&self) -> Result<Vec<BulkOperation>, CommandError> {
        let (mut shown, mut before) = (Vec::new(), None);
        loop {
            let page = call::reading(self.stores.bulk.operations(before, READ_AT_ONCE)).await?;
            let is_last = page.len() < READ_AT_ONCE;
            before = page.last().map(|operation| operation.id);
            shown.extend(page.into_iter().filter(|operation| self.sees_operation(operation)));
            if is_last || shown.len() >= SHOWN_MAX {
                shown.truncate(SHOWN_MAX);
                return Ok(shown);
            }
        }
    }

    pub async fn operation(&self, id: OperationId) -> Result<BulkOperation, CommandError> {
        let operation = call::reading(self.stores.bulk.operation(id)).await?;
        operation.filter(|operation| self.sees_operation(operation)).ok_or(CommandError::NoSuchOperation)
    }

    /// Stops a running operation: once this returns, it changes nothing more. Idempotent.
    pub async fn stop_operation(&self, id: OperationId) -> Result<BulkOperation, CommandError> {
        self.check_may_write()?;
        self.operation(id).await?;
        let now = self.clock.now();
        call::writing(self.stores.bulk.finish_operation(id, None, OperationState::Stopped, None, now)).await?;
        self.operation(id).await
    }

    /// An operation is known to those who may know of all the timers that it may change.
    fn sees_operation(&self, operation: &BulkOperation) -> bool {
        let namespaces = &operation.filter.namespaces;
        self.caller.bound_to().is_none()
            || (!namespaces.is_empty() && namespaces.iter().all(|namespace| self.caller.sees(namespace)))
    }
}

/// Carries out operations, one at a time on each node. Operations take turns, so that a long one does not hold up those of other tenants.
pub struct OperationRunner {
    commands: Commands,
    retention: Span,
    leased: Option<LeasedOperation>,
    /// What the last step took.
    spent: Spent,
    purged: Option<Instant>,
    has_one_writer: bool,
    calls: Option<CallRate>,
    /// Whether many calls were made beside the last pages: the next search is short then.
    is_beside_calls: bool,
}

/// How far the count of an operation has come.
enum Counted {
    Partly,
    All,
    /// More match than its client expects.
    TooMany,
    /// It was stopped, or is another node's.
    NotOurs,
}

/// What became of the lease of an operation in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    /// This runner goes on with the operation.
    Held,
    /// The operation was given back, is another node's, or has ended.
    Released,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// There is nothing to do.
    Nothing,
    /// A page of an operation, or its end.
    Page,
}

impl OperationRunner {
    /// `commands` on behalf of the administrator: what an operation may change is in its filter.
    pub fn new(commands: Commands, retention: Span) -> Self {
        Self {
            commands,
            retention,
            leased: None,
            spent: Spent::default(),
            purged: None,
            has_one_writer: false,
            calls: None,
            is_beside_calls: false,
        }
    }

    /// The same for a store with one writer: each page is short, because claims wait for it.
    #[must_use]
    pub fn sharing_one_writer(self) -> Self {
        Self { has_one_writer: true, ..self }
    }

    /// The same, with longer pauses while many calls are made.
    #[must_use]
    pub fn yielding_to(self, calls: CallCount) -> Self {
        Self { calls: Some(CallRate::from(CALLS_PER_SECOND_MIN, calls)), ..self }
    }

    /// Until `stop`. No error ends it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            let ran = self.run_once().await;
            if let Err(error) = &ran {
                tracing::warn!(%error, "a step of an operation failed; it will be tried again");
            }
            self.is_beside_calls = self.are_calls_made();
            let wait = async {
                match ran {
                    Ok(Ran::Page) => tokio::time::sleep(pause(self.spent, self.is_beside_calls)).await,
                    Ok(Ran::Nothing) => {
                        let started = self.commands.searches.await_operation();
                        drop(tokio::time::timeout(LOOK_INTERVAL, started).await);
                    }
                    Err(_) => tokio::time::sleep(LOOK_INTERVAL).await,
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = wait => {}
            }
        }
    }

    /// Whether many calls are made that are not those of the operation itself, and have to wait for its commits.
    fn are_calls_made(&mut self) -> bool {
        let are_many = self.calls.as_mut().is_some_and(CallRate::is_high);
        // At the end of a time slice: as it was in it.
        let Some(leased) = &self.leased else { return are_many && self.is_beside_calls };
        let work = BulkWork::from_text(&leased.operation.work).filter(|_| leased.counting.is_none());
        are_many && work.is_some_and(|work| !matches!(work, BulkWork::Fire | BulkWork::Retry { .. }))
    }

    /// One page of one operation.
    pub async fn run_once(&mut self) -> StoreResult<Ran> {
        self.purge_sometimes().await?;
        let Some(mut leased) = self.take().await? else { return Ok(Ran::Nothing) };
        self.spent = Spent::default();
        match self.step(&mut leased).await {
            Ok(Lease::Held) => self.leased = Some(leased),
            Ok(Lease::Released) => {}
            Err(StoreError::Corrupt(_)) if leased.page > 1 => {
                leased.page /= 2;
                self.leased = Some(leased);
            }
            Err(StoreError::Corrupt(cause)) => {
                tracing::error!(operation.id = %leased.operation.id.0, error = %cause, "an operation fails for what cannot be read");
                self.finish(&leased.operation, Some(UNREADABLE)).await?;
            }
            Err(error) if error.is_not_done() => {
                self.leased = Some(leased);
                return Err(error);
            }
            // What was sent may yet be committed, however late. The operation is let go, and taken again once its lease has run out: with
            // that its epoch rises, and a late page changes nothing.
            Err(error) => return Err(error),
        }
        Ok(Ran::Page)
    }

    /// The operation that this node goes on with.
    async fn take(&mut self) -> StoreResult<Option<LeasedOperation>> {
        if let Some(leased) = self.leased.take() {
            return Ok(Some(leased));
        }
        let operation = call::writing(self.commands.stores.bulk.take_operation(LEASE)).await?;
        Ok(operation.map(LeasedOperation::new))
    }

    async fn step(&mut self, leased: &mut LeasedOperation) -> StoreResult<Lease> {
        let operation = &mut leased.operation;
        let Some(work) = BulkWork::from_text(&operation.work) else {
            return self.finish(operation, Some(NOT_UNDERSTOOD)).await;
        };
        if let Some(counting) = &mut leased.counting {
            let began = Instant::now();
            let counted = self.count(operation, &work, counting).await?;
            self.spent.searching = began.elapsed();
            return match counted {
                Counted::Partly => Ok(Lease::Held),
                Counted::All => {
                    leased.counting = None;
                    Ok(Lease::Held)
                }
                Counted::TooMany => self.finish(operation, Some(TOO_MANY)).await,
                Counted::NotOurs => Ok(self.not_ours(operation)),
            };
        }
        let left = operation.expected_max.saturating_sub(processed(operation));
        let matches = match leased.matches.take().filter(Matches::is_fresh) {
            Some(matches) => matches,
            None => self.search(operation, left).await?,
        };
        if matches.count() > left {
            return self.finish(operation, Some(TOO_MANY)).await;
        }
        self.change(leased, &work, matches).await
    }

    /// Reads the next timers that match, and one more than may be changed, if there is one.
    async fn search(&mut self, operation: &BulkOperation, left: u64) -> StoreResult<Matches> {
        let began = Instant::now();
        let limit = page_limits(self.has_one_writer)
            .read_ahead(self.is_beside_calls)
            .min(u32::try_from(left.saturating_add(1)).unwrap_or(u32::MAX));
        let query = ListQuery { limit, after: operation.cursor, ..in_order(operation.filter.clone()) };
        let page = call::reading(self.commands.stores.timers.list(&query)).await?;
        self.spent.searching = began.elapsed();
        Ok(Matches::read(page, began))
    }

    /// Changes the first of those that match.
    async fn change(&mut self, leased: &mut LeasedOperation, work: &BulkWork, matches: Matches) -> StoreResult<Lease> {
        let limits = page_limits(self.has_one_writer);
        let portion = matches.portion(limits.page(leased.page, self.is_beside_calls));
        // A single timer that cannot be read was tried before, and made the page that small.
        let is_unreadable = match portion.timers {
            [only] if leased.page == 1 => self.is_unreadable(only).await?,
            _ => false,
        };
        let gives_back = !portion.is_last && leased.is_slice_over();
        let LeasedOperation { operation, page, .. } = leased;
        let now = self.commands.clock.now();
        let plan = self.commands.plan(operation.started_at, operation.matched, now);
        let timers = if is_unreadable { &[] } else { portion.timers };
        let ranks = processed(operation)..;
        let items: Vec<_> = ranks.zip(timers).map(|(rank, timer)| work.item(timer, rank, &plan, now)).collect();
        let errors = portion.unreadable as u64 + u64::from(is_unreadable);
        let lease = if gives_back { Span::ZERO } else { LEASE };
        let progress = Progress { errors, lease, ..progress(operation, portion.cursor.or(operation.cursor)) };
        let action = work.action();
        let began = Instant::now();
        let changes = call::writing(self.commands.stores.bulk.change_all(&action, &items, Some(&progress), now)).await;
        let changes = match changes {
            Ok(Some(changes)) => changes,
            Ok(None) => return Ok(self.not_ours(operation)),
            Err(error) => {
                leased.matches = Some(matches);
                return Err(error);
            }
        };
        (self.spent.writing, self.spent.timers) = (began.elapsed(), u32::try_from(items.len()).unwrap_or(u32::MAX));
        // A page that was not full says nothing of one that is.
        if self.spent.timers == *page {
            *page = next_page(*page, self.spent.writing, limits);
        }
        self.commands.tell(work, &changes);
        let counts = BulkCounts::of(&changes);
        operation.changed += counts.changed;
        operation.skipped += counts.skipped;
        operation.errors += errors + counts.unreadable;
        operation.cursor = progress.cursor;
        if portion.is_last {
            return self.finish(operation, None).await;
        }
        let (timers, unreadable) = (portion.timers.len(), portion.unreadable);
        leased.matches = matches.without(timers, unreadable);
        Ok(if gives_back { Lease::Released } else { Lease::Held })
    }

    /// Counts a page of the timers that match. Once all are counted, and before the first is changed, their number is exact.
    async fn count(&self, operation: &mut BulkOperation, work: &BulkWork, counting: &mut Counting) -> StoreResult<Counted> {
        let query = ListQuery { limit: COUNTED_AT_ONCE, after: counting.cursor, ..in_order(operation.filter.clone()) };
        let page = call::reading(self.commands.stores.timers.list(&query)).await?;
        let timers = counting.timers + page.count() as u64;
        if timers > operation.expected_max {
            return Ok(Counted::TooMany);
        }
        let matched = page.next.is_none().then_some(timers);
        if matched.is_some() || counting.renewed.elapsed() >= RENEWAL_INTERVAL {
            let progress = Progress { matched, ..progress(operation, None) };
            let (action, now) = (work.action(), self.commands.clock.now());
            let noted = self.commands.stores.bulk.change_all(&action, &[], Some(&progress), now);
            if call::writing(noted).await?.is_none() {
                return Ok(Counted::NotOurs);
            }
            counting.renewed = Instant::now();
        }
        // Only now: a page whose count could not be noted is counted again.
        (counting.timers, counting.cursor) = (timers, page.next);
        let Some(matched) = matched else { return Ok(Counted::Partly) };
        operation.matched = matched;
        Ok(Counted::All)
    }

    fn not_ours(&self, operation: &BulkOperation) -> Lease {
        tracing::info!(operation.id = %operation.id.0, "an operation was stopped, or another node goes on with it");
        Lease::Released
    }

    async fn is_unreadable(&self, timer: &store::Summary) -> StoreResult<bool> {
        match call::reading(self.commands.stores.timers.get(timer.id)).await {
            Ok(_) => Ok(false),
            Err(StoreError::Corrupt(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn finish(&self, operation: &BulkOperation, error: Option<&str>) -> StoreResult<Lease> {
        let state = if error.is_some() { OperationState::Failed } else { OperationState::Done };
        let now = self.commands.clock.now();
        let finish = self.commands.stores.bulk.finish_operation(operation.id, Some(operation.epoch), state, error, now);
        if !call::writing(finish).await? {
            return Ok(self.not_ours(operation));
        }
        let BulkOperation { changed, skipped, errors, .. } = operation;
        let state = state.as_str();
        tracing::info!(operation.id = %operation.id.0, state, changed, skipped, errors, "an operation has ended");
        Ok(Lease::Released)
    }

    /// Removes operations that ended longer ago than they are retained.
    async fn purge_sometimes(&mut self) -> StoreResult<()> {
        if self.purged.is_some_and(|purged| purged.elapsed() < PURGE_INTERVAL) {
            return Ok(());
        }
        self.purged = Some(Instant::now());
        let before: Timestamp = self.commands.clock.now().saturating_sub(self.retention);
        call::writing(self.commands.stores.bulk.purge_operations(before, PURGED_AT_ONCE)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
