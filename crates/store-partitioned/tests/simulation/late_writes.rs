//! A call that is repeated because its outcome is unknown answers what stays true once the writes of the first call arrive, and the new
//! owner is told of what is taken back.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{Shard, Span, Status, SystemClock, TimerId, Timestamp};
use store::{
    Claim, ClaimToken, DueEntry, DueStore, Member, MembershipStore, NodeId, OnLocked, ShardCursor, ShardLease, StoreError,
    StoreResult, TimerStore,
};
use store_conformance::timer;
use store_partitioned::{Bug, Columns, Consistency, Database, Memory, Outcome, Partition, PartitionedStore, Range, Row, Write};

const SHARD: Shard = Shard(0);
const TIMERS: &str = "timers-0";
const NUDGES: &str = "nudges";
/// In simulated time: far more often than once in it a process looks for nudges.
const NUDGED_WITHIN: Duration = Duration::from_secs(5);
/// More writes than any of these tests makes.
const LAG: usize = 1_000;

/// Holds back writes of timers, each of which its caller gives up.
struct Slow {
    memory: Memory,
    /// How many writes of timers get through before one is held back; `None` for all.
    passing: Mutex<Option<usize>>,
    held_back: Mutex<Vec<Write>>,
    /// No nudge is written, and the answer says so row by row.
    refuses_nudges: AtomicBool,
    /// Linearizable reads, such as the verification of a claim, wait while a test holds it.
    fence: tokio::sync::Mutex<()>,
}

impl Slow {
    fn hold_back_after(&self, writes: usize) {
        *self.passing.lock().unwrap() = Some(writes);
    }

    /// What was held back arrives.
    async fn deliver(&self) -> Vec<Outcome> {
        let writes = std::mem::take(&mut *self.held_back.lock().unwrap());
        assert!(!writes.is_empty(), "nothing was held back");
        self.memory.write(&Partition::new(TIMERS), writes).await.unwrap()
    }
}

#[async_trait]
impl Database for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    async fn set_up(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        if consistency == Consistency::Linearizable {
            drop(self.fence.lock().await);
        }
        self.memory.read(partition, keys, columns, consistency).await
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        self.memory.range(partition, range, columns, consistency).await
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        let is_held_back = partition.as_str() == TIMERS && {
            let mut passing = self.passing.lock().unwrap();
            let is_last = *passing == Some(0);
            *passing = passing.and_then(|writes| writes.checked_sub(1));
            is_last
        };
        if is_held_back {
            self.held_back.lock().unwrap().extend(writes);
            return Err(StoreError::Unknown("held back".into()));
        }
        if partition.as_str() == NUDGES && self.refuses_nudges.load(Ordering::Relaxed) {
            return Ok(writes.iter().map(|_| Outcome::Failed(StoreError::Unavailable("planned".into()))).collect());
        }
        self.memory.write(partition, writes).await
    }

    async fn ping(&self) -> StoreResult<()> {
        Ok(())
    }
}

/// Two nodes: the first has the shard and a timer that is due, and is about to lose the shard.
struct Trial {
    slow: Arc<Slow>,
    first: PartitionedStore,
    second: PartitionedStore,
    claim: Claim,
    due: Vec<DueEntry>,
}

impl Trial {
    async fn begin() -> Self {
        Self::begin_with(None).await
    }

    /// With a bug in the first node.
    async fn begin_with(bug: Option<Bug>) -> Self {
        let slow = Arc::new(Slow {
            memory: Memory::default(),
            passing: Mutex::default(),
            held_back: Mutex::default(),
            refuses_nudges: AtomicBool::default(),
            fence: tokio::sync::Mutex::default(),
        });
        let open = async || {
            let clock = Arc::new(SystemClock::default());
            PartitionedStore::open(Arc::clone(&slow) as _, clock, 1).await.unwrap()
        };
        let (first, second) = (open().await.with_bug(bug), open().await);
        first.create(vec![timer("http://a.example/").build()]).await.unwrap();
        let shard_leases = take(&first, NodeId(1)).await;
        let due = due(&first).await;
        assert_eq!(due.len(), 1);
        let claim = Claim { token: ClaimToken(7), shard_leases, lease: Span::from_secs(600), on_locked: OnLocked::Skip };
        Self { slow, first, second, claim, due }
    }

    /// The second node takes the shard.
    async fn take_over(&self) -> Vec<ShardLease> {
        self.first.release(NodeId(1), &self.claim.shard_leases).await.unwrap();
        take(&self.second, NodeId(2)).await
    }

    async fn status(&self) -> Status {
        self.second.get(self.due[0].id).await.unwrap().unwrap().status
    }
}

async fn take(store: &PartitionedStore, node: NodeId) -> Vec<ShardLease> {
    store.heartbeat(&Member::new(node), Span::from_secs(60)).await.unwrap();
    let taken = store.acquire(node, &[SHARD]).await.unwrap();
    assert_eq!(taken.len(), 1);
    taken
}

async fn due(store: &PartitionedStore) -> Vec<DueEntry> {
    due_after(store, None).await
}

async fn due_after(store: &PartitionedStore, after: Option<(Timestamp, TimerId)>) -> Vec<DueEntry> {
    store.due(&[ShardCursor { shard: SHARD, after }], Timestamp::MAX, 10).await.unwrap()
}

/// What a node is told of by nudges, soon.
async fn told(store: &PartitionedStore) -> Vec<DueEntry> {
    tokio::time::timeout(NUDGED_WITHIN, store.nudged()).await.map(Result::unwrap).unwrap_or_default()
}

#[tokio::test]
async fn a_claim_that_was_given_up_is_not_made_later() {
    let trial = Trial::begin().await;
    trial.slow.hold_back_after(0);
    trial.first.claim(&trial.claim, &trial.due).await.unwrap_err();
    let shard_leases = trial.take_over().await;
    let claimed = trial.first.claim(&trial.claim, &trial.due).await.unwrap();
    assert!(claimed.is_empty(), "its shard has another owner");

    let arrived = trial.slow.deliver().await;

    assert!(matches!(arrived[..], [Outcome::Refused]), "{arrived:?}");
    assert_eq!(trial.status().await, Status::Pending);
    let claim = Claim { token: ClaimToken(8), shard_leases, ..trial.claim };
    assert_eq!(trial.second.claim(&claim, &due(&trial.second).await).await.unwrap().len(), 1, "the new owner claims it");
}

#[tokio::test]
async fn a_claim_that_was_handed_out_is_not_taken_back_later() {
    let trial = Trial::begin().await;
    // The first node does not see yet that its epoch has ended: it claims, and learns it from the verification.
    trial.slow.memory.set_lag(LAG);
    trial.take_over().await;
    trial.slow.hold_back_after(1);
    trial.first.claim(&trial.claim, &trial.due).await.unwrap_err();
    assert_eq!(trial.status().await, Status::Executing);
    let claimed = trial.first.claim(&trial.claim, &trial.due).await.unwrap();
    assert_eq!(claimed.len(), 1, "what carries the token is handed out");

    let arrived = trial.slow.deliver().await;

    assert!(matches!(arrived[..], [Outcome::Refused]), "{arrived:?}");
    assert_eq!(trial.status().await, Status::Executing, "no other node may call it");
}

/// The new owner reads the shard to its end between the claim of the other node and its verification. Says what it is told of after that.
async fn told_of_what_is_taken_back_behind_the_cursor(trial: &Trial) -> Vec<DueEntry> {
    trial.slow.memory.set_lag(LAG);
    trial.take_over().await;
    let end = Some((trial.due[0].at, TimerId::LAST));
    let fence = trial.slow.fence.lock().await;
    let reading = async {
        tokio::task::yield_now().await;
        assert_eq!(trial.status().await, Status::Executing, "it is claimed, and not verified yet");
        assert!(due(&trial.second).await.is_empty(), "there is nothing to read before the end");
        drop(fence);
    };
    let (claimed, ()) = tokio::join!(trial.first.claim(&trial.claim, &trial.due), reading);
    assert!(claimed.unwrap().is_empty(), "its shard has another owner");
    assert_eq!(trial.status().await, Status::Pending);
    assert!(due_after(&trial.second, end).await.is_empty(), "the cursor has passed it");
    told(&trial.second).await
}

#[tokio::test(start_paused = true)]
async fn the_new_owner_is_told_of_what_is_taken_back_behind_its_cursor() {
    let trial = Trial::begin().await;
    assert_eq!(told_of_what_is_taken_back_behind_the_cursor(&trial).await, trial.due);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_silently_is_found_by_that_test() {
    let trial = Trial::begin_with(Some(Bug::TakenBackSilently)).await;
    assert!(told_of_what_is_taken_back_behind_the_cursor(&trial).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_new_owner_is_told_of_what_is_taken_back_although_the_answer_was_lost() {
    let trial = Trial::begin().await;
    trial.slow.memory.set_lag(LAG);
    trial.take_over().await;
    trial.slow.hold_back_after(1);
    trial.first.claim(&trial.claim, &trial.due).await.unwrap_err();

    let arrived = trial.slow.deliver().await;

    assert!(matches!(arrived[..], [Outcome::Applied]), "{arrived:?}");
    assert_eq!(trial.status().await, Status::Pending);
    assert_eq!(told(&trial.second).await, trial.due);
}

#[tokio::test]
async fn a_nudge_that_was_not_written_is_no_nudge() {
    let trial = Trial::begin().await;
    trial.slow.refuses_nudges.store(true, Ordering::Relaxed);
    let refused = trial.first.nudge(&trial.due).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}
