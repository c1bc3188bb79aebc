//! A store that fails on purpose, for tests of everything above it.
//!
//! ```text
//!   caller ──▶ Faulty ──▶ store         what the caller sees      what happened
//!              NotDone                  Unavailable               nothing
//!              DoneUnknown ──▶ done     Unknown                   it is done
//!              NotDoneUnknown           Unknown                   nothing
//!              Corrupt                  Corrupt                   nothing
//!              Late, LateAnswer         the answer, later         it is done, later or at once
//! ```

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::Span;
use store::{Decorator, Operation, Store, StoreError, StoreResult};

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing was done.
    NotDone,
    /// It is done, but its answer is lost.
    DoneUnknown,
    /// It is not done, but the caller cannot tell.
    NotDoneUnknown,
    /// It stumbles over something stored that cannot be understood, and nothing was done.
    Corrupt,
    /// It begins late.
    Late(Span),
    /// It is done at once, and answered late.
    LateAnswer(Span),
}

/// How many of a thousand calls go wrong by chance. Only calls that write can have an unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Odds {
    pub not_done_per_mille: u16,
    pub done_unknown_per_mille: u16,
    pub not_done_unknown_per_mille: u16,
    pub late_per_mille: u16,
    pub late_answer_per_mille: u16,
    /// How late at most.
    pub late_by_max: Span,
}

/// A store whose calls go wrong as planned: by a script, or by chance from a seed.
pub struct Faulty<S: ?Sized> {
    inner: Arc<S>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    script: BTreeMap<Operation, VecDeque<Option<Fault>>>,
    down: bool,
    chance: Option<(Dice, Odds)>,
    calls: BTreeMap<Operation, usize>,
}

impl<S: Store + ?Sized> Faulty<S> {
    /// Nothing goes wrong until it is planned.
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Things go wrong by chance, in the same way for the same seed and the same order of calls.
    pub fn by_chance(inner: Arc<S>, seed: u64, odds: Odds) -> Self {
        let faulty = Self::new(inner);
        faulty.plan_mut().chance = Some((Dice(seed), odds));
        faulty
    }

    /// The next call of `operation` that has no plan yet goes wrong like this. Plans come before chance.
    pub fn plan(&self, operation: Operation, fault: Fault) {
        self.plan_mut().script.entry(operation).or_default().push_back(Some(fault));
    }

    /// The next call of `operation` that has no plan yet goes well.
    pub fn plan_none(&self, operation: Operation) {
        self.plan_mut().script.entry(operation).or_default().push_back(None);
    }

    /// Until this is taken back, every call fails as not done: the database is away.
    pub fn set_down(&self, is_down: bool) {
        self.plan_mut().down = is_down;
    }

    /// From now on nothing goes wrong any more.
    pub fn heal(&self) {
        let mut plan = self.plan_mut();
        *plan = Plan { calls: std::mem::take(&mut plan.calls), ..Plan::default() };
    }

    /// How often `operation` was called, those that went wrong included.
    pub fn calls(&self, operation: Operation) -> usize {
        self.plan_mut().calls.get(&operation).copied().unwrap_or_default()
    }

    fn plan_mut(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plan {
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        *self.calls.entry(operation).or_default() += 1;
        if self.down {
            return Some(Fault::NotDone);
        }
        if let Some(planned) = self.script.get_mut(&operation).and_then(VecDeque::pop_front) {
            return planned;
        }
        let (dice, odds) = self.chance.as_mut()?;
        odds.fault(operation, dice)
    }
}

impl Odds {
    /// Rolls twice whatever comes of it, so that one call's fate does not depend on what another call was.
    fn fault(&self, operation: Operation, dice: &mut Dice) -> Option<Fault> {
        let (mut roll, lateness) = (dice.below(1_000), dice.below(self.late_by_max.as_micros().unsigned_abs() + 1));
        let unknown = |odds: u16| if operation.writes() { odds } else { 0 };
        let lateness = Span::from_micros_clamped(i64::try_from(lateness).unwrap_or(i64::MAX));
        let table = [
            (self.not_done_per_mille, Fault::NotDone),
            (unknown(self.done_unknown_per_mille), Fault::DoneUnknown),
            (unknown(self.not_done_unknown_per_mille), Fault::NotDoneUnknown),
            (self.late_per_mille, Fault::Late(lateness)),
            (self.late_answer_per_mille, Fault::LateAnswer(lateness)),
        ];
        for (odds, fault) in table {
            if roll < u64::from(odds) {
                return Some(fault);
            }
            roll -= u64::from(odds);
        }
        None
    }
}

/// SplitMix64: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    const fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

impl<S: Store + ?Sized> Decorator for Faulty<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn around<T: Send>(&self, operation: Operation, work: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let fault = self.plan_mut().next(operation);
        let planned = |what: &str| format!("planned: {} {what}", operation.as_str());
        match fault {
            None => work.await,
            Some(Fault::NotDone) => Err(StoreError::Unavailable(planned("was not done").into())),
            Some(Fault::NotDoneUnknown) => Err(StoreError::Unknown(planned("has no answer").into())),
            Some(Fault::Corrupt) => Err(StoreError::Corrupt(planned("was not understood").into())),
            Some(Fault::DoneUnknown) => {
                work.await?;
                Err(StoreError::Unknown(planned("has no answer").into()))
            }
            Some(Fault::Late(by)) => {
                tokio::time::sleep(by.as_duration()).await;
                work.await
            }
            Some(Fault::LateAnswer(by)) => {
                let answer = work.await;
                tokio::time::sleep(by.as_duration()).await;
                answer
            }
        }
    }

    /// Fails as planned for a ping: a store that has no better way probes by a ping.
    async fn probe(&self) -> StoreResult<()> {
        Decorator::ping(self).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::{ManualClock, Shard, Span, TimerId, Timestamp};

    use store::{DueStore, Filter, HealthStore, Member, MembershipStore, NodeId, Operation, StoreError, TimerStore};

    use super::{Fault, Faulty, Odds};
    use crate::Model;

    const NODE: NodeId = NodeId(1);
    const SHARDS: [Shard; 1] = [Shard(0)];
    const LEASE: Span = Span::from_secs(60);

    /// One in which both nodes live.
    async fn model() -> Arc<Model> {
        let model = Model::new(Arc::new(ManualClock::at(Timestamp::from_micros(0))), 4);
        for node in [NODE, NodeId(2)] {
            model.heartbeat(&Member::new(node), LEASE).await.unwrap();
        }
        Arc::new(model)
    }

    /// Whether another node can still take the shard: then the acquire was not done.
    async fn is_free(model: &Model) -> bool {
        !model.acquire(NodeId(2), &SHARDS).await.unwrap().is_empty()
    }

    #[tokio::test]
    async fn what_is_not_done_is_not_done_and_says_so() {
        for (fault, kind) in [(Fault::NotDone, "unavailable"), (Fault::Corrupt, "corrupt")] {
            let model = model().await;
            let faulty = Faulty::new(Arc::clone(&model));
            faulty.plan(Operation::Acquire, fault);
            let error = faulty.acquire(NODE, &SHARDS).await.unwrap_err();
            assert!(error.is_not_done() && error.kind() == kind, "{error}");
            assert!(is_free(&model).await);
        }
    }

    #[tokio::test]
    async fn an_unknown_outcome_can_be_either() {
        for (fault, done) in [(Fault::DoneUnknown, true), (Fault::NotDoneUnknown, false)] {
            let model = model().await;
            let faulty = Faulty::new(Arc::clone(&model));
            faulty.plan(Operation::Acquire, fault);
            let error = faulty.acquire(NODE, &SHARDS).await.unwrap_err();
            assert!(matches!(error, StoreError::Unknown(_)), "{error}");
            assert_eq!(is_free(&model).await, !done, "{fault:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_call_waits_before_and_a_late_answer_after() {
        for (fault, done) in [(Fault::Late(LEASE), false), (Fault::LateAnswer(LEASE), true)] {
            let model = model().await;
            let faulty = Faulty::new(Arc::clone(&model));
            faulty.plan(Operation::Acquire, fault);
            let call = faulty.acquire(NODE, &SHARDS);
            let half = LEASE.as_duration() / 2;
            assert!(tokio::time::timeout(half, call).await.is_err(), "{fault:?} takes its time");
            assert_eq!(is_free(&model).await, !done, "{fault:?}");
        }
    }

    #[tokio::test]
    async fn plans_are_followed_call_by_call_and_for_their_operation_only() {
        let faulty = Faulty::new(model().await);
        faulty.plan(Operation::Ping, Fault::NotDone);
        faulty.plan_none(Operation::Ping);
        faulty.plan(Operation::Ping, Fault::NotDone);
        faulty.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap();
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(faulty.ping().await.is_ok());
        }
        assert_eq!(answers, [false, true, false, true]);
        assert_eq!((faulty.calls(Operation::Ping), faulty.calls(Operation::Count)), (4, 1));
    }

    #[tokio::test]
    async fn a_store_that_is_down_fails_until_it_is_up() {
        let faulty = Faulty::new(model().await);
        faulty.set_down(true);
        assert!(faulty.ping().await.unwrap_err().is_not_done());
        assert!(faulty.get(TimerId::random(Timestamp::from_micros(0))).await.is_err());
        faulty.set_down(false);
        faulty.ping().await.unwrap();
    }

    async fn fates(seed: u64) -> Vec<&'static str> {
        let odds =
            Odds { not_done_per_mille: 200, done_unknown_per_mille: 200, not_done_unknown_per_mille: 100, ..Odds::default() };
        let faulty = Faulty::by_chance(model().await, seed, odds);
        let mut fates = Vec::new();
        for _ in 0..1_000 {
            fates.push(faulty.settle(&[]).await.map_or_else(|error| error.kind(), |_| "well"));
        }
        fates
    }

    #[tokio::test]
    async fn chance_is_the_same_for_the_same_seed_and_keeps_its_odds() {
        let first = fates(7).await;
        assert_eq!(first, fates(7).await);
        assert_ne!(first, fates(8).await);
        for (fate, expected) in [("unavailable", 200), ("unknown", 300), ("well", 500)] {
            let count = first.iter().filter(|found| **found == fate).count();
            assert!(count.abs_diff(expected) < 60, "{fate}: {count} of 1,000");
        }
    }

    #[tokio::test]
    async fn reads_are_never_unknown_and_a_healed_store_never_fails() {
        let odds = Odds { done_unknown_per_mille: 500, not_done_unknown_per_mille: 500, ..Odds::default() };
        let faulty = Faulty::by_chance(model().await, 1, odds);
        faulty.ping().await.unwrap();
        faulty.settle(&[]).await.unwrap_err();
        faulty.heal();
        faulty.settle(&[]).await.unwrap();
        assert_eq!(faulty.calls(Operation::Settle), 2);
    }
}
