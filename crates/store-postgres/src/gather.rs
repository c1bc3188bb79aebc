//! Calls about one timer each, by many clients at a time, gathered into one statement and one commit.
//!
//! ```text
//!   get ─────▶ batch ──▶ one look ──────────────────────────────────▶ answered
//!   cancel ──▶ batch ──▶ one statement over rows that are free ──┬──▶ answered
//!   update ──▶ batch ──▶ one statement over rows that are free ──┤
//!                                                                └─▶ whatever it passed over: by itself
//! ```
//!
//! The statements wait for no lock. A timer that another session holds, that is not pending, or that has another revision is
//! passed over, and its caller makes the call for it alone.

mod cancel;
mod replace;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use domain::{Cause, Timer, TimerId, Timestamp};
use store::{Changed, StoreError, StoreResult};
use store_sql::{BatchLimits, Batcher, definition_bytes};

pub(crate) use self::{cancel::CANCEL_FREE, replace::REPLACE_FREE};
use self::{cancel::CancelFree, replace::ReplaceFree};
use crate::{
    change::{Cancel, Update},
    connector::Bulkhead,
    failure::{Failure, Verdict},
    read::Read,
};

/// As for creates: while one batch is being committed, the next is on its way.
const LIMITS: BatchLimits = BatchLimits {
    workers: 2,
    items_max: 512,
    bytes_max: 4 * 1024 * 1024,
    items_worthwhile: 64,
    linger_max: Duration::from_millis(2),
    orders_queued_max: 4_096,
    wait_max: Duration::from_secs(3),
};
/// What an id takes of a statement.
const ID_BYTES: usize = 32;

/// The way in for calls about one timer.
#[derive(Debug)]
pub struct Gathered {
    callers: Bulkhead,
    shards: Arc<AtomicU16>,
    reads: Batcher<TimerId, Option<Timer>>,
    cancels: Batcher<(TimerId, Timestamp), Option<Changed>>,
    updates: Batcher<(Arc<Timer>, Timestamp), Option<Changed>>,
}

impl Gathered {
    /// Must be called inside a Tokio runtime.
    pub fn start(callers: &Bulkhead, shards: &Arc<AtomicU16>) -> Self {
        let with = || (callers.clone(), Arc::clone(shards));
        let (read, cancel, update) = (with(), with(), with());
        Self {
            reads: Batcher::start(
                LIMITS,
                |_| ID_BYTES,
                move |ids| {
                    let (callers, shards) = read.clone();
                    async move { read_all(&callers, ids, shards.load(Ordering::Relaxed)).await }
                },
            ),
            cancels: Batcher::start(
                LIMITS,
                |_| ID_BYTES,
                move |wanted| {
                    let (callers, shards) = cancel.clone();
                    async move { cancel_all(&callers, wanted, shards.load(Ordering::Relaxed)).await }
                },
            ),
            updates: Batcher::start(
                LIMITS,
                |(timer, _)| definition_bytes(&timer.definition),
                move |wanted| {
                    let (callers, shards) = update.clone();
                    async move { update_all(&callers, wanted, shards.load(Ordering::Relaxed)).await }
                },
            ),
            callers: callers.clone(),
            shards: Arc::clone(shards),
        }
    }

    pub async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        only(self.reads.submit(vec![id]).await)
    }

    pub async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        match only(self.cancels.submit(vec![(id, now)]).await)? {
            Some(changed) => Ok(changed),
            None => self.callers.run(Cancel { id, now, shards: self.shards.load(Ordering::Relaxed) }).await,
        }
    }

    pub async fn update(&self, changed: Timer, now: Timestamp) -> StoreResult<Changed> {
        let changed = Arc::new(changed);
        if let Some(answer) = only(self.updates.submit(vec![(Arc::clone(&changed), now)]).await)? {
            return Ok(answer);
        }
        let changed = Arc::unwrap_or_clone(changed);
        self.callers.run(Update { changed, now, shards: self.shards.load(Ordering::Relaxed) }).await
    }
}

fn only<Answer>(mut answers: Vec<StoreResult<Answer>>) -> StoreResult<Answer> {
    answers.pop().unwrap_or_else(|| Err(StoreError::Unknown("it was not answered".into())))
}

/// Where each id stands first. One that repeats goes by itself, after what stands first.
fn firsts(ids: &[TimerId]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(ids.len());
    (0..ids.len()).filter(|&place| seen.insert(ids[place])).collect()
}

async fn cancel_all(callers: &Bulkhead, wanted: Vec<(TimerId, Timestamp)>, shards: u16) -> Vec<StoreResult<Option<Changed>>> {
    let ids: Vec<_> = wanted.iter().map(|(id, _)| *id).collect();
    let firsts = firsts(&ids);
    let call = CancelFree::new(firsts.iter().map(|&place| wanted[place]), shards);
    answers(ids.len(), &firsts, callers.attempt(call).await)
}

async fn update_all(callers: &Bulkhead, wanted: Vec<(Arc<Timer>, Timestamp)>, shards: u16) -> Vec<StoreResult<Option<Changed>>> {
    let ids: Vec<_> = wanted.iter().map(|(timer, _)| timer.id()).collect();
    let firsts = firsts(&ids);
    let call = ReplaceFree::new(firsts.iter().map(|&place| wanted[place].clone()).collect(), shards);
    answers(ids.len(), &firsts, callers.attempt(call).await)
}

/// One answer for each of the batch: that of the statement for the first of an id, none for its repetitions.
fn answers(count: usize, firsts: &[usize], answered: Result<Vec<Option<Changed>>, Failure>) -> Vec<StoreResult<Option<Changed>>> {
    let mut answers: Vec<StoreResult<Option<Changed>>> = (0..count).map(|_| Ok(None)).collect();
    match answered {
        Ok(answered) => firsts.iter().zip(answered).for_each(|(&place, answer)| answers[place] = Ok(answer)),
        // Damage or a value of one timer is not the trouble of its neighbours: nothing was done, and each goes by itself.
        Err(Failure { verdict: Verdict::Duplicate | Verdict::Value, .. }) => {}
        Err(failure) => firsts.iter().for_each(|&place| answers[place] = Err(failure.error.clone())),
    }
    answers
}

async fn read_all(callers: &Bulkhead, ids: Vec<TimerId>, shards: u16) -> Vec<StoreResult<Option<Timer>>> {
    let wanted = firsts(&ids).into_iter().map(|place| ids[place]).collect();
    let existing = callers.run(Read::new(wanted, shards)).await;
    let found = |id: &TimerId| match existing.as_ref().map(|existing| existing.get(id)) {
        Ok(Some(Ok(existing))) => Ok(Some(existing.timer.clone())),
        Ok(Some(Err(unreadable))) => Err(StoreError::Corrupt(Cause::of(unreadable.clone()))),
        Ok(None) => Ok(None),
        Err(error) => Err(error.clone()),
    };
    ids.iter().map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> TimerId {
        TimerId::from_uuid(sqlx::types::Uuid::from_u128(number))
    }

    #[test]
    fn of_repeated_ids_the_first_is_answered_and_the_rest_go_by_themselves() {
        let firsts = firsts(&[id(3), id(1), id(3), id(2), id(1)]);
        assert_eq!(firsts, [0, 1, 3]);
        let answered = answers(5, &firsts, Ok(vec![Some(Changed::NotFound), None, Some(Changed::NotFound)]));
        assert_eq!(
            answered.into_iter().map(|answer| answer.unwrap().is_some()).collect::<Vec<_>>(),
            [true, false, false, true, false]
        );
    }

    #[test]
    fn what_one_timer_refuses_is_tried_one_by_one_and_what_all_meet_is_answered_to_all() {
        let failed = |verdict| answers(2, &[0, 1], Err(Failure::new(verdict, "refused")));
        assert!(failed(Verdict::Duplicate).iter().chain(&failed(Verdict::Value)).all(|answer| matches!(answer, Ok(None))));
        assert!(failed(Verdict::NotDone).iter().all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))));
        assert!(failed(Verdict::Lost).iter().all(|answer| matches!(answer, Err(StoreError::Unknown(_)))));
    }
}
