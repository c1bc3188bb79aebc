use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{ManualClock, Missed, NewTimer, Next, Shard, Span, Status, Timer, TimerId, Timestamp};
use store::{
    Changed, Claim, ClaimToken, Claimed, Created, DueEntry, HeartbeatReply, Member, NodeId, OnLocked, ShardCursor, ShardLease,
    Store, StoreError, StoreResult,
};

use crate::{Draft, Fixture, NOW, secs};

/// Longer than any test.
pub const LONG: Span = secs(600);
/// The interval of polling, and the most polls.
const GLANCE: Duration = Duration::from_millis(5);
const GLANCES_MAX: usize = 4_000;
/// How long a call of a race may be refused in a row. Half of what a behaviour may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A fresh store whose shards are all owned by one node, and the steps of which behaviours consist.
pub struct Stage {
    pub store: Arc<dyn Store>,
    pub node: NodeId,
    pub shard_leases: Vec<ShardLease>,
    clock: Option<Arc<ManualClock>>,
    last_token: AtomicI64,
}

impl Stage {
    /// Opens the fixture's database and acquires all its shards.
    pub async fn set(fixture: &impl Fixture) -> Self {
        let mut stage = Self::unowned(fixture).await;
        stage.shard_leases = stage.join(stage.node).await;
        assert_eq!(stage.shard_leases.len(), usize::from(stage.store.shards()), "a new database lets all its shards be acquired");
        stage
    }

    /// Opens the fixture's database and acquires none of its shards.
    pub async fn unowned(fixture: &impl Fixture) -> Self {
        let store = fixture.open().await;
        Self { store, node: NodeId(1), shard_leases: Vec::new(), clock: fixture.clock(), last_token: AtomicI64::new(0) }
    }

    pub fn all_shards(&self) -> Vec<Shard> {
        (0..self.store.shards()).map(Shard).collect()
    }

    pub fn shard(&self, id: TimerId) -> Shard {
        id.shard(self.store.shards())
    }

    pub fn shard_lease(&self, id: TimerId) -> ShardLease {
        let shard = self.shard(id);
        *self.shard_leases.iter().find(|shard_lease| shard_lease.shard == shard).expect("the stage holds all shards")
    }

    // ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────

    /// `node` sends a heartbeat with a lease that outlasts any test.
    pub async fn live(&self, node: NodeId) -> HeartbeatReply {
        self.live_for(node, LONG).await
    }

    pub async fn live_for(&self, node: NodeId, lease: Span) -> HeartbeatReply {
        self.store.heartbeat(&Member::new(node), lease).await.unwrap()
    }

    /// The lease of `node` expires.
    pub async fn die(&self, node: NodeId) {
        self.live_for(node, Span::ZERO).await;
    }

    /// Those of `shards` that `node` acquires, in order.
    pub async fn acquire(&self, node: NodeId, shards: &[Shard]) -> Vec<ShardLease> {
        let mut shard_leases = answered(|| self.store.acquire(node, shards)).await;
        shard_leases.sort_unstable_by_key(|shard_lease| shard_lease.shard);
        shard_leases
    }

    /// `node` sends a heartbeat and acquires every shard that it can.
    pub async fn join(&self, node: NodeId) -> Vec<ShardLease> {
        self.live(node).await;
        self.acquire(node, &self.all_shards()).await
    }

    /// Hand-over: `heir` gets all shards, because the node of the stage releases them; it lives on.
    pub async fn hand_over(&self, heir: NodeId) -> Vec<ShardLease> {
        answered(|| self.store.release(self.node, &self.shard_leases)).await;
        self.inherit(heir).await
    }

    /// Take-over: `heir` gets all shards, because the node of the stage is dead.
    pub async fn take_over(&self, heir: NodeId) -> Vec<ShardLease> {
        self.die(self.node).await;
        self.inherit(heir).await
    }

    async fn inherit(&self, heir: NodeId) -> Vec<ShardLease> {
        let shard_leases = self.join(heir).await;
        assert_eq!(shard_leases.len(), self.shard_leases.len(), "no other node owns a shard");
        shard_leases
    }

    /// The database's clock, if tests can move it.
    pub fn clock(&self) -> Option<&ManualClock> {
        self.clock.as_deref()
    }

    /// Polls until there is an answer. A clock that tests can move moves a little before each poll.
    pub async fn eventually<T, Answer: Future<Output = Option<T>>>(&self, what: &str, mut look: impl FnMut() -> Answer) -> T {
        for _ in 0..GLANCES_MAX {
            if let Some(found) = look().await {
                return found;
            }
            self.glance_later().await;
        }
        panic!("{what}: not seen after {GLANCES_MAX} looks");
    }

    /// Lets a little time pass by the database's clock.
    pub async fn glance_later(&self) {
        match &self.clock {
            Some(clock) => clock.advance(Span::from_micros_clamped(i64::try_from(GLANCE.as_micros()).unwrap_or(i64::MAX))),
            None => tokio::time::sleep(GLANCE).await,
        }
    }

    // ── Creating and reading ───────────────────────────────────────────────────────────────────────────────

    pub async fn create_all(&self, drafts: Vec<Draft>) -> Vec<Created> {
        let count = drafts.len();
        let batch: Vec<NewTimer> = drafts.into_iter().map(Draft::build).collect();
        let created = self.store.create(batch).await.unwrap();
        assert_eq!(created.len(), count, "there is one answer for each timer of a batch");
        created
    }

    /// Registers a timer that must be new.
    pub async fn create(&self, draft: Draft) -> Timer {
        match self.create_all(vec![draft]).await.remove(0) {
            Created::Created(timer) => timer,
            other => panic!("a new timer was met with {other:?}"),
        }
    }

    /// Registers timers that must be new.
    pub async fn create_new(&self, drafts: Vec<Draft>) -> Vec<Timer> {
        let new = |created| match created {
            Created::Created(timer) => timer,
            other => panic!("a new timer was met with {other:?}"),
        };
        self.create_all(drafts).await.into_iter().map(new).collect()
    }

    pub async fn get(&self, id: TimerId) -> Timer {
        self.store.get(id).await.unwrap().expect("the timer is there")
    }

    /// A timer in this status, brought there through the allowed transitions.
    pub async fn in_status(&self, draft: Draft, status: Status) -> Timer {
        let timer = self.create(draft).await;
        match status {
            Status::Pending => return timer,
            Status::Canceled => {
                self.cancel(timer.id()).await;
            }
            Status::Executing => {
                self.claim_one(&timer).await;
            }
            Status::Paused => {
                self.pause(timer.id()).await;
            }
            Status::Completed | Status::Failed | Status::Expired => {
                let claimed = self.claim_one(&timer).await;
                let next = match status {
                    Status::Completed => Next::Completed { at: NOW },
                    Status::Expired => Next::Expired { at: NOW, error: "HTTP 503; expired".to_owned(), is_called: true },
                    _ => Next::Failed { at: NOW, error: "HTTP 500".to_owned() },
                };
                self.settle(&claimed, next).await;
            }
        }
        let timer = self.get(timer.id()).await;
        assert_eq!(timer.status, status);
        timer
    }

    pub async fn cancel(&self, id: TimerId) -> Timer {
        match self.store.cancel(id, None, NOW).await.unwrap() {
            Changed::Done(timer) => timer,
            other => panic!("a pending timer's cancel was met with {other:?}"),
        }
    }

    pub async fn pause(&self, id: TimerId) -> Timer {
        match self.store.pause(id, None, None, NOW).await.unwrap() {
            Changed::Done(timer) => timer,
            other => panic!("a pending timer's pause was met with {other:?}"),
        }
    }

    pub async fn resume(&self, id: TimerId, now: Timestamp) -> Timer {
        match self.store.resume(id, None, Missed::Fire, now).await.unwrap() {
            Changed::Done(timer) => timer,
            other => panic!("a paused timer's resume was met with {other:?}"),
        }
    }

    pub async fn update(&self, changed: &Timer, now: Timestamp) -> Timer {
        match self.store.update(changed, now).await.unwrap() {
            Changed::Done(timer) => timer,
            other => panic!("a pending timer's update was met with {other:?}"),
        }
    }

    // ── The scheduler's side ───────────────────────────────────────────────────────────────────────────────

    /// All timers that are due at or before `until`, read from the beginning, in the order of `(at, id)`.
    pub async fn due(&self, until: Timestamp) -> Vec<DueEntry> {
        let from: Vec<_> = self.all_shards().into_iter().map(|shard| ShardCursor { shard, after: None }).collect();
        let mut entries = self.store.due(&from, until, 100_000).await.unwrap();
        entries.sort_unstable();
        entries
    }

    /// The due entry of one timer, if it has one.
    pub async fn due_of(&self, id: TimerId) -> Vec<DueEntry> {
        self.due(Timestamp::MAX).await.into_iter().filter(|due| due.id == id).collect()
    }

    pub fn next_token(&self) -> ClaimToken {
        ClaimToken(self.last_token.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// A claim under all shard leases of the stage, with a new token and a long lease.
    pub fn new_claim(&self) -> Claim {
        self.claim_for(LONG)
    }

    pub fn claim_for(&self, lease: Span) -> Claim {
        Claim { token: self.next_token(), shard_leases: self.shard_leases.clone(), lease, on_locked: OnLocked::Skip }
    }

    pub async fn claim(&self, entries: &[DueEntry]) -> Vec<Claimed> {
        self.store.claim(&self.new_claim(), entries).await.unwrap()
    }

    /// Claims a pending timer that no other node wants.
    pub async fn claim_one(&self, timer: &Timer) -> Claimed {
        self.claim_one_for(timer, LONG).await
    }

    pub async fn claim_one_for(&self, timer: &Timer, lease: Span) -> Claimed {
        let claim = self.claim_for(lease);
        let mut claimed = self.store.claim(&claim, &[entry(timer)]).await.unwrap();
        assert_eq!(claimed.len(), 1, "a pending timer can be claimed");
        claimed.remove(0)
    }

    /// Settles a valid claim.
    pub async fn settle(&self, claimed: &Claimed, next: Next) {
        let counted = self.store.settle(&[claimed.settle(next)]).await.unwrap();
        assert_eq!(counted, [true], "a standing claim can be settled");
    }
}

/// Makes a call of a race until it is answered, as a client does: a store may refuse one of many that want the same rows, with nothing done.
pub async fn answered<T, Answer: Future<Output = StoreResult<T>>>(mut call: impl FnMut() -> Answer) -> T {
    let mut refusal = None;
    let calls = async {
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(error @ StoreError::Unavailable(_)) => refusal = Some(error),
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(GLANCE).await;
        }
    };
    let Ok(answer) = tokio::time::timeout(ANSWERED_WITHIN, calls).await else {
        panic!("not answered within {ANSWERED_WITHIN:?}; refused last: {refusal:?}");
    };
    answer
}

/// The entry of a timer that has not been tried yet.
pub fn entry(timer: &Timer) -> DueEntry {
    DueEntry { at: timer.execute_at, id: timer.id(), destination: timer.definition.destination() }
}

/// The entry of a timer whose next attempt is due at another time than the first one was.
pub fn entry_at(timer: &Timer, at: Timestamp) -> DueEntry {
    DueEntry { at, ..entry(timer) }
}

/// A pending timer whose first attempt failed with `HTTP 503`, and whose second is due at `at`.
pub async fn retried(stage: &Stage, draft: Draft, at: Timestamp) -> Timer {
    let claimed = stage.claim_one(&stage.create(draft).await).await;
    stage.settle(&claimed, Next::Pending { at, attempt: 1, error: Some("HTTP 503".to_owned()) }).await;
    stage.get(claimed.entry.id).await
}

/// The timers of claims, in the order of their ids.
pub fn timers_of(claimed: &[Claimed]) -> Vec<Timer> {
    let mut timers: Vec<_> = claimed.iter().map(|claimed| claimed.timer.clone().expect("the timer can be read")).collect();
    timers.sort_by_key(Timer::id);
    timers
}

pub fn ids_of(claimed: &[Claimed]) -> Vec<TimerId> {
    let mut ids: Vec<_> = claimed.iter().map(|claimed| claimed.entry.id).collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>() -> StoreResult<T> {
        Err(StoreError::Unavailable("a deadlock".into()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_refused_is_made_again() {
        let mut calls = 0;
        let third = answered(|| {
            calls += 1;
            std::future::ready(if calls < 3 { refused() } else { Ok(calls) })
        });
        assert_eq!(third.await, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a deadlock")]
    async fn a_call_that_is_always_refused_fails() {
        answered(|| std::future::ready(refused::<()>())).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the outcome is unknown")]
    async fn a_call_whose_outcome_is_unknown_is_not_made_again() {
        answered(|| std::future::ready(Err::<(), _>(StoreError::Unknown("a lost answer".into())))).await;
    }
}
