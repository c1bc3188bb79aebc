use async_trait::async_trait;
use domain::{Attempt, Timer, TimerId, Timestamp};

use crate::{EventPage, StoreResult, Watermark};

/// The record of what happened to timers. For `commands`, which follow it.
///
/// ```text
///   created     created_at of the timer
///   changed     the moment of every write that raised its revision
///   attempted   the moment at which an attempt was recorded
///   finished    when it ended: updated_at of a timer that has
/// ```
///
/// Nothing is written for a timer that is created, delivered and settled in time: its own rows are the record. A new life, by a
/// revival or a retry, removes the end of the former one, and a revival its creation; both are then recorded as events of their own
/// ([`Happened::Ended`](crate::Happened::Ended), [`Happened::Began`](crate::Happened::Began)).
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Which writes are under way. Once a later watermark [is past](Watermark::is_past) this one, every event that was recorded
    /// before `at` can be read: a write that began after this watermark records its events at positions after
    /// `at` less [`PROMPT_WITHIN`](crate::PROMPT_WITHIN).
    async fn watermark(&self) -> StoreResult<Watermark>;

    /// The events with positions after `after` up to `until`, in their order: about `limit` of each source, so that a full page
    /// ends before `until`. It always moves on.
    async fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> StoreResult<EventPage>;

    /// These timers as they stand, in any order. Those that are gone or cannot be read are left out.
    async fn timers(&self, ids: &[TimerId]) -> StoreResult<Vec<Timer>>;

    /// The recorded attempts with these numbers, in the order that is asked for; `None` where one is kept no more.
    async fn attempts_at(&self, of: &[(TimerId, i64)]) -> StoreResult<Vec<Option<Attempt>>>;

    /// Removes entries of the journal from before `before`, the oldest first, at most `limit`. Says how many.
    async fn forget_events(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;
}
