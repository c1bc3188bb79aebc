use async_trait::async_trait;
use domain::{Attempt, Group, JsonText, Namespace, NewTimer, Timer, TimerId, Timestamp};

use crate::{Count, Filter, GroupCount, ListQuery, Page, StoreResult};

/// The timers, as clients see them: register, read, list, change. For `commands`.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait TimerStore: Send + Sync {
    /// Registers timers, each by itself: one that is refused does not hinder its neighbours. Answers in the order
    /// of the batch. An id that is taken is resolved by [`domain::resolve`]; ids may repeat within a batch, and then
    /// count in its order. A moved or overwritten timer keeps `created_at`, gets `updated_at`, and starts its attempts
    /// over; a revived one starts its life anew. All of them take the revision that follows the old one.
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>>;

    /// The timer as it stands, or `None`.
    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>>;

    /// One page of the timers that match, without their payloads. Sorted by the wanted time, then by id, both in the
    /// wanted direction, so that pages by cursor neither repeat nor miss a timer that stays where it is.
    async fn list(&self, query: &ListQuery) -> StoreResult<Page>;

    /// How many timers match: exactly as long as they are no more than [`COUNTED_MAX`].
    async fn count(&self, filter: &Filter) -> StoreResult<Count>;

    /// Replaces the stored definition and `execute_at` by those of `changed`, if the timer is pending and
    /// still has the revision that `changed` carries. The revision rises, `updated_at` becomes `now`, and the destination
    /// follows the callback.
    ///
    /// Another `execute_at` than the stored one is a new due time: that is when the next attempt is due, attempts start
    /// over and the last error is forgotten. The same `execute_at` leaves all of that as it is: what waits for a retry
    /// goes on waiting for it.
    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels a pending timer. Once this has answered [`Changed::Done`], no claim gets it.
    async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels those of `ids` that are pending, in one commit; says for each whether it was.
    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>>;

    /// Puts a failed or expired timer back to pending: its next attempt is due at `now`, attempts start over, and the last error is
    /// forgotten. `execute_at` stays, and with it the id that receivers know the call by. The revision rises.
    async fn reopen(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed>;

    /// Gives a timer that has ended a new life, with the definition and `execute_at` of `changed`, if it still has the revision that
    /// `changed` carries. It is as if it were registered at `now`, except that the revision rises.
    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed>;

    /// The ids of the timers that match, in their order: those after `after`, at most `limit`.
    async fn matching(&self, filter: &Filter, after: Option<TimerId>, limit: usize) -> StoreResult<Vec<TimerId>>;

    /// How many timers of a group there are, by their status. No more than [`COUNTED_MAX`](crate::COUNTED_MAX) are counted.
    async fn count_group(&self, namespace: &Namespace, group: &Group) -> StoreResult<GroupCount>;

    /// The ids of those timers of a group that have not ended, in their order: those after `after`, at most `limit`.
    async fn group_members(
        &self,
        namespace: &Namespace,
        group: &Group,
        after: Option<TimerId>,
        limit: usize,
    ) -> StoreResult<Vec<TimerId>>;

    /// The metadata of these timers, in the order of `ids`, as far as it takes no more than `bytes_max` bytes together; that of the
    /// first is there in any case. An answer that is shorter than `ids` ends where it was full: ask again for the rest. `None` for
    /// a timer that has no metadata, or that is not there.
    async fn metadata(&self, ids: &[TimerId], bytes_max: usize) -> StoreResult<Vec<Option<JsonText>>>;

    /// What is remembered of a timer's attempts: the last [`limits::ATTEMPTS_KEPT`](domain::limits::ATTEMPTS_KEPT) of them,
    /// in the order in which they were recorded. They live as long as the timer, through all its lives.
    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>>;
}

/// What became of one timer of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is new.
    Created(Timer),
    /// Its id was there, and stays as it is.
    Existing(Timer),
    /// Its id was there, and took the new content or time, or a new life.
    Replaced(Timer),
    /// Its id was there with other content; nothing was changed.
    Conflict(Timer),
}

impl Created {
    pub const fn timer(&self) -> &Timer {
        match self {
            Self::Created(timer) | Self::Existing(timer) | Self::Replaced(timer) | Self::Conflict(timer) => timer,
        }
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It is done; this is the timer now.
    Done(Timer),
    /// The timer is not pending; this is what was met.
    WrongStatus(Timer),
    /// Another caller changed it since it was read: read it again. Only for updates and new lives.
    StaleRevision,
    NotFound,
}
