//! Operations: bulk changes that are carried out in the background, page by page, and survive the node that carries them out.
//!
//! ```text
//!   take, under a lease ──▶ count, where that takes long ──▶ search those that match after the cursor ◀── all are changed ──┐
//!                                                               │                                                         │
//!                                     ┌─────────────────────────▶ change_all: the next few and the new cursor, one commit ──┤
//!                                     └──────────── pause: longer beside calls ◀────────────────────────────────────────────┘
//! ```

mod matches;
mod pace;

use std::{future::Future, sync::Arc, time::Duration};

use domain::{Span, Timestamp};
use store::{BulkOperation, Cursor, ListQuery, OperationId, OperationState, Progress, StoreError, StoreResult};
use tokio::time::Instant;

use self::{
    matches::{Matches, READ_AHEAD},
    pace::{PAGE_TIMERS, Spent, commit_time, next_page, pause},
};
use crate::{BulkWork, CommandError, Commands, bulk::in_order, call};

/// How many operations one answer shows.
const SHOWN_MAX: usize = 100;
/// How many are read at a time to find those.
const READ_AT_ONCE: usize = 100;
/// How many timers are counted at a time.
const COUNTED_AT_ONCE: u32 = 1_000;
/// How often the lease is renewed while nothing but counting is done.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// For how long an operation is its node's after each page. Another node goes on with it when this has run out.
const LEASE: Span = Span::from_secs(5);
/// How often is looked for operations that no node carries out.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const PURGE_INTERVAL: Duration = Duration::from_secs(60);
const PURGED_AT_ONCE: usize = 1_000;
/// Why an operation fails that met more timers than its client expects.
const TOO_MANY: &str = "more timers match than expected_max";

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

/// Carries out operations, one at a time on each node.
pub struct OperationRunner {
    commands: Commands,
    retention: Span,
    taken: Option<Taken>,
    /// What the last step took.
    spent: Spent,
    purged: Option<Instant>,
    has_one_writer: bool,
    calls: Option<CallCount>,
    /// How many calls there were before the last page.
    calls_before: u64,
}

/// How many calls this node has made.
pub type CallCount = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The operation that this node carries out.
struct Taken {
    operation: BulkOperation,
    /// How many timers the next page has at most: less when one of them cannot be read.
    page: u32,
    /// Timers that match, were read, and are not changed yet.
    matches: Option<Matches>,
    /// Whether the last commit may or may not have happened.
    is_unsure: bool,
    /// What its last step took.
    spent: Spent,
    /// There while its timers are counted. After a crash they are counted anew: nothing was changed yet.
    counting: Option<Counting>,
}

struct Counting {
    timers: u64,
    cursor: Option<Cursor>,
    renewed: Instant,
}

impl Taken {
    fn new(operation: BulkOperation, page: u32) -> Self {
        let has_begun = operation.cursor.is_some() || BulkWork::is_counted(&operation.work);
        let counting = (!has_begun).then(|| Counting { timers: 0, cursor: None, renewed: Instant::now() });
        Self { operation, page, matches: None, is_unsure: false, spent: Spent::default(), counting }
    }
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
            taken: None,
            spent: Spent::default(),
            purged: None,
            has_one_writer: false,
            calls: None,
            calls_before: 0,
        }
    }

    /// The same for a store with one writer: each page is short, because claims wait for it.
    #[must_use]
    pub fn sharing_one_writer(self) -> Self {
        Self { has_one_writer: true, ..self }
    }

    /// The same, with longer pauses while calls are made.
    #[must_use]
    pub fn yielding_to(self, calls: CallCount) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// Until `stop`. No error ends it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            let ran = self.run_once().await;
            if let Err(error) = &ran {
                tracing::warn!(%error, "a step of an operation failed; it will be tried again");
            }
            let is_beside_calls = self.is_beside_calls();
            let wait = async {
                match ran {
                    Ok(Ran::Page) => tokio::time::sleep(pause(self.spent, is_beside_calls)).await,
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

    /// Whether calls were made since the last page that are not those of the operation itself, and have to wait for its commits.
    fn is_beside_calls(&mut self) -> bool {
        let Some(calls) = self.calls.as_ref().map(|count| count()) else { return false };
        let are_new = std::mem::replace(&mut self.calls_before, calls) != calls;
        let writing = self.taken.as_ref().filter(|taken| taken.counting.is_none());
        let work = writing.and_then(|taken| BulkWork::from_text(&taken.operation.work));
        are_new && work.is_some_and(|work| !matches!(work, BulkWork::Fire | BulkWork::Retry { .. }))
    }

    /// One page of one operation.
    pub async fn run_once(&mut self) -> StoreResult<Ran> {
        self.purge_sometimes().await?;
        let Some(mut taken) = self.take().await? else { return Ok(Ran::Nothing) };
        taken.spent = Spent::default();
        let goes_on = self.step(&mut taken).await;
        self.spent = taken.spent;
        match goes_on {
            Ok(true) => self.taken = Some(taken),
            Ok(false) => {}
            Err(StoreError::Corrupt(_)) if taken.page > 1 => {
                taken.page /= 2;
                self.taken = Some(taken);
            }
            Err(error) => {
                taken.is_unsure = true;
                self.taken = Some(taken);
                return Err(error);
            }
        }
        Ok(Ran::Page)
    }

    /// The operation that this node goes on with, as far as it is still its own.
    async fn take(&mut self) -> StoreResult<Option<Taken>> {
        let bulk = &self.commands.stores.bulk;
        match self.taken.take() {
            Some(taken) if !taken.is_unsure => Ok(Some(taken)),
            Some(taken) => {
                let stored = match call::reading(bulk.operation(taken.operation.id)).await {
                    Ok(stored) => stored,
                    Err(error) => {
                        self.taken = Some(taken);
                        return Err(error);
                    }
                };
                let is_ours = |operation: &BulkOperation| {
                    operation.state == OperationState::Running && operation.epoch == taken.operation.epoch
                };
                let operation = stored.filter(is_ours);
                Ok(operation.map(|operation| Taken::new(operation, taken.page)))
            }
            None => {
                let operation = call::writing(bulk.take_operation(LEASE)).await?;
                Ok(operation.map(|operation| Taken::new(operation, PAGE_TIMERS)))
            }
        }
    }

    /// Whether the operation goes on.
    async fn step(&self, taken: &mut Taken) -> StoreResult<bool> {
        let operation = &mut taken.operation;
        let Some(work) = BulkWork::from_text(&operation.work) else {
            return self.finish(operation, Some("it was started by a later version, and cannot be understood")).await;
        };
        if let Some(counting) = &mut taken.counting {
            let began = Instant::now();
            let counted = self.count(operation, &work, counting).await?;
            taken.spent.searching = began.elapsed();
            return match counted {
                Counted::Partly => Ok(true),
                Counted::All => {
                    taken.counting = None;
                    Ok(true)
                }
                Counted::TooMany => self.finish(operation, Some(TOO_MANY)).await,
                Counted::NotOurs => Ok(false),
            };
        }
        let left = operation.expected_max.saturating_sub(processed(operation));
        let matches = match taken.matches.take().filter(Matches::is_fresh) {
            Some(matches) => matches,
            None => self.search(operation, left, &mut taken.spent).await?,
        };
        if matches.count() > left {
            return self.finish(operation, Some(TOO_MANY)).await;
        }
        self.change(taken, &work, matches).await
    }

    /// Reads the next timers that match, and one more than may be changed, if there is one.
    async fn search(&self, operation: &BulkOperation, left: u64, spent: &mut Spent) -> StoreResult<Matches> {
        let began = Instant::now();
        let limit = READ_AHEAD.min(u32::try_from(left.saturating_add(1)).unwrap_or(u32::MAX));
        let query = ListQuery { limit, after: operation.cursor, ..in_order(operation.filter.clone()) };
        let page = call::reading(self.commands.stores.timers.list(&query)).await?;
        spent.searching = began.elapsed();
        Ok(Matches::read(page, began))
    }

    /// Changes the first of those that match. Whether the operation goes on.
    async fn change(&self, taken: &mut Taken, work: &BulkWork, matches: Matches) -> StoreResult<bool> {
        let Taken { operation, page, spent, .. } = taken;
        let portion = matches.portion(*page);
        let now = self.commands.clock.now();
        let plan = self.commands.plan(operation.started_at, operation.matched, now);
        // A single timer that cannot be read was tried before, and made the page that small.
        let is_unreadable = match portion.timers {
            [only] if *page == 1 => self.is_unreadable(only).await?,
            _ => false,
        };
        let timers = if is_unreadable { &[] } else { portion.timers };
        let ranks = processed(operation)..;
        let items: Vec<_> = ranks.zip(timers).map(|(rank, timer)| work.item(timer, rank, &plan, now)).collect();
        let cursor = portion.cursor.or(operation.cursor);
        let errors = u64::from(is_unreadable);
        let progress = Progress { operation: operation.id, epoch: operation.epoch, cursor, errors, matched: None, lease: LEASE };
        let action = work.action();
        let began = Instant::now();
        let changes = call::writing(self.commands.stores.bulk.change_all(&action, &items, Some(&progress), now)).await;
        let changes = match changes {
            Ok(Some(changes)) => changes,
            Ok(None) => return Ok(self.not_ours(operation)),
            Err(error) => {
                taken.matches = Some(matches);
                return Err(error);
            }
        };
        (spent.writing, spent.timers) = (began.elapsed(), u32::try_from(items.len()).unwrap_or(u32::MAX));
        // A page that was not full says nothing of one that is.
        if spent.timers == *page {
            *page = next_page(*page, spent.writing, commit_time(self.has_one_writer));
        }
        let changed = self.commands.tell(work, &changes);
        operation.changed += changed;
        operation.skipped += changes.len() as u64 - changed;
        operation.errors += errors;
        operation.cursor = cursor;
        if portion.is_last {
            return self.finish(operation, None).await;
        }
        let count = portion.timers.len();
        taken.matches = matches.without(count);
        Ok(true)
    }

    /// Counts a page of the timers that match. Once all are counted, and before the first is changed, their number is exact.
    async fn count(&self, operation: &mut BulkOperation, work: &BulkWork, counting: &mut Counting) -> StoreResult<Counted> {
        let query = ListQuery { limit: COUNTED_AT_ONCE, after: counting.cursor, ..in_order(operation.filter.clone()) };
        let page = call::reading(self.commands.stores.timers.list(&query)).await?;
        counting.timers += page.timers.len() as u64;
        counting.cursor = page.next;
        if counting.timers > operation.expected_max {
            return Ok(Counted::TooMany);
        }
        let matched = page.next.is_none().then_some(counting.timers);
        if matched.is_none() && counting.renewed.elapsed() < RENEWAL_INTERVAL {
            return Ok(Counted::Partly);
        }
        let (id, epoch) = (operation.id, operation.epoch);
        let progress = Progress { operation: id, epoch, cursor: None, errors: 0, matched, lease: LEASE };
        let action = work.action();
        let noted = self.commands.stores.bulk.change_all(&action, &[], Some(&progress), self.commands.clock.now());
        if call::writing(noted).await?.is_none() {
            self.not_ours(operation);
            return Ok(Counted::NotOurs);
        }
        counting.renewed = Instant::now();
        let Some(matched) = matched else { return Ok(Counted::Partly) };
        operation.matched = matched;
        Ok(Counted::All)
    }

    /// Whether an operation goes on here that is not this node's any more: it does not.
    fn not_ours(&self, operation: &BulkOperation) -> bool {
        tracing::info!(operation.id = %operation.id.0, "an operation was stopped, or another node goes on with it");
        false
    }

    async fn is_unreadable(&self, timer: &store::Summary) -> StoreResult<bool> {
        match call::reading(self.commands.stores.timers.get(timer.id)).await {
            Ok(_) => Ok(false),
            Err(StoreError::Corrupt(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn finish(&self, operation: &BulkOperation, error: Option<&str>) -> StoreResult<bool> {
        let state = if error.is_some() { OperationState::Failed } else { OperationState::Done };
        let now = self.commands.clock.now();
        let finish = self.commands.stores.bulk.finish_operation(operation.id, Some(operation.epoch), state, error, now);
        call::writing(finish).await?;
        let BulkOperation { changed, skipped, errors, .. } = operation;
        let state = state.as_str();
        tracing::info!(operation.id = %operation.id.0, state, changed, skipped, errors, "an operation has ended");
        Ok(false)
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

/// How many timers an operation is done with.
const fn processed(operation: &BulkOperation) -> u64 {
    operation.changed + operation.skipped + operation.errors
}

#[cfg(test)]
mod tests;
