use std::time::Duration;

use async_trait::async_trait;
use domain::{Attempt, Group, Missed, Namespace, NewTimer, Timer, TimerId, Timestamp};

use crate::{Count, Filter, GroupCount, ListQuery, Page, Sharded, StoreResult};

/// The timers, as clients see them: register, read, list, change. For `commands`.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait TimerStore: Sharded {
    /// Registers timers, each by itself: one that is refused does not hinder its neighbours. Answers in the order
    /// of the batch. An id that is taken is resolved by [`domain::resolve`]; ids may repeat within a batch, and then
    /// count in its order. A moved or overwritten timer keeps `created_at`, gets `updated_at`, and starts its attempts
    /// over; a revived one starts its life anew. All of them take the revision that follows the old one.
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>>;

    /// The timer as it stands, or `None`.
    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>>;

    /// One page of the timers that match, without their payloads. Sorted by the wanted time, then by id, both in the
    /// wanted direction, so that pages by cursor neither repeat nor miss a timer that stays where it is. The search ends when the
    /// page is full, when all was looked at, or when its budget ran out: then the cursor is where it stopped, and every call comes
    /// further than the one before. A timer that cannot be read fails no list: the page has its place instead, and counts it.
    async fn list(&self, query: &ListQuery) -> StoreResult<Page>;

    /// How many timers match: exactly where that takes no longer than `budget` and they are no more than [`COUNTED_MAX`], otherwise
    /// perhaps as an estimate. A store with few timers counts them in any case.
    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<Count>;

    /// Replaces the stored definition and `execute_at` by those of `changed`, if the timer is pending or paused and
    /// still has the revision that `changed` carries; a paused one stays paused. The revision rises, `updated_at` becomes `now`, and the destination
    /// follows the callback.
    ///
    /// Another `execute_at` than the stored one is a new due time: that is when the next attempt is due, attempts start
    /// over and the last error is forgotten. The same `execute_at` leaves all of that as it is: what waits for a retry
    /// goes on waiting for it, but no longer than until its expiry: see [`Timer::next_look`].
    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels a pending or paused timer, if it still has the `expected` revision where one is given. Once this has answered
    /// [`Changed::Done`], no claim gets it. The revision stays.
    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed>;

    /// Cancels those of `ids` that are pending or paused, in one commit; says for each whether it was.
    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>>;

    /// Puts a failed or expired timer back to pending, if it still has the `expected` revision where one is given: its next attempt is
    /// due at `now`, attempts start over, and the last error is forgotten. `execute_at` stays, and with it the id that
    /// receivers know the call by. The revision rises.
    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed>;

    /// Gives a timer that has ended a new life, with the definition and `execute_at` of `changed`, if it still has the revision that
    /// `changed` carries. It is as if it were registered at `now`, except that the revision rises.
    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed>;

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
    /// Takes a pending timer out of what is due, if it still has the `expected` revision where one is given. Once this has answered
    /// [`Changed::Done`], no claim gets it until it is resumed. When its next attempt is due, its attempts and its last error stay
    /// as they are. The revision rises and `updated_at` becomes `now`.
    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed>;

    /// Puts a paused timer back to pending, if it still has the `expected` revision where one is given. Its next attempt is due when it
    /// was. If that has passed at `now`, `missed` decides: the attempt is due at `now` (`execute_at` stays), or the timer ends as
    /// expired with [`MISSED_WHILE_PAUSED`] as its error. One with an `on_failure` has that error then, is due at `now`, and is ended by
    /// the claim: see [`BulkStep::LetExpire`](crate::BulkStep::LetExpire). The revision rises, but for one that ends, and `updated_at`
    /// becomes `now`.
    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed>;

    /// What is remembered of a timer's attempts: the last [`limits::ATTEMPTS_KEPT`](domain::limits::ATTEMPTS_KEPT) of them,
    /// in the order in which they were recorded. They live as long as the timer, through all its lives.
    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>>;
}

/// Why a timer has expired that was due while it was paused.
pub const MISSED_WHILE_PAUSED: &str = "was due while it was paused";

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
    /// Its id was there, with an expiry of its own that is no later than the time that it should take; nothing was changed.
    PastExpiry(Timer),
}

impl Created {
    pub const fn timer(&self) -> &Timer {
        match self {
            Self::Created(timer)
            | Self::Existing(timer)
            | Self::Replaced(timer)
            | Self::Conflict(timer)
            | Self::PastExpiry(timer) => timer,
        }
    }
}

/// What became of a change of one timer. The status is decided first: a timer whose status does not permit the change is
/// [`Changed::WrongStatus`] whatever its revision.
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// It is done; this is the timer now.
    Done(Timer),
    /// The status of the timer does not permit the change; this is what was met.
    WrongStatus(Timer),
    /// The timer has another revision than the one that the change was made from or expects; this is what was met.
    StaleRevision(Timer),
    NotFound,
}
