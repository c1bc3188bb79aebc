//! What only a SQLite file can do wrong. The promises of every store are in `tests/conformance.rs`.

mod backups;
mod default_index;
mod opening;
mod plans;
mod scans;
mod tallies;
mod upgrading;
mod view;
mod writing;

use std::{path::PathBuf, sync::Arc};

use domain::{ManualClock, NewTimer, Next, Shard, Span, Status, Timer, Timestamp};
use store::{
    Claim, ClaimToken, Claimed, Created, DueEntry, DueStore, Member, MembershipStore, NodeId, OnLocked, ShardLease, TimerStore,
};
use store_conformance::{NOW, timer};

use crate::{OpenError, SqliteStore};

const LONG: Span = Span::from_secs(600);
const LATER: Timestamp = NOW.saturating_add(Span::from_secs(3600));

/// A place for one database.
struct Place {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(LATER)) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("timers.db")
    }

    fn try_open(&self) -> Result<SqliteStore, OpenError> {
        SqliteStore::open(self.path(), Arc::clone(&self.clock) as _)
    }

    fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    /// The sentence with which opening is refused.
    fn refusal(&self) -> String {
        match self.try_open() {
            Ok(_) => panic!("{} was opened", self.path().display()),
            Err(error) => error.to_string(),
        }
    }

    /// A connection past the store, as a person with a shell would have.
    fn shell(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

/// Timers with numbers for ids, one a second from [`NOW`] on.
fn numbered(numbers: std::ops::Range<u64>) -> Vec<NewTimer> {
    let one = |number| {
        let seconds = Span::from_secs(u32::try_from(number % 3000).unwrap());
        timer("http://a.example/").numbered(number).due_in(seconds).payload(r#"{"n":1}"#).build()
    };
    numbers.map(one).collect()
}

async fn create(store: &SqliteStore, batch: Vec<NewTimer>) -> Vec<Timer> {
    let new = |created| match created {
        Created::Created(timer) => timer,
        other => panic!("a new timer was met with {other:?}"),
    };
    store.create(batch).await.unwrap().into_iter().map(new).collect()
}

async fn own(store: &SqliteStore, node: u128) -> Vec<ShardLease> {
    store.heartbeat(&Member::new(NodeId(node)), LONG).await.unwrap();
    store.acquire(NodeId(node), &[Shard(0)]).await.unwrap()
}

fn entry(timer: &Timer) -> DueEntry {
    DueEntry { at: timer.execute_at, id: timer.id(), destination: timer.definition.destination() }
}

async fn claim(store: &SqliteStore, shard_leases: &[ShardLease], timers: &[Timer]) -> Vec<Claimed> {
    let claim = Claim { token: ClaimToken(7), shard_leases: shard_leases.to_vec(), lease: LONG, on_locked: OnLocked::Skip };
    store.claim(&claim, &timers.iter().map(entry).collect::<Vec<_>>()).await.unwrap()
}

/// One timer in each status, in the order of [`Status::ALL`].
async fn one_in_each_status(store: &SqliteStore) -> Vec<Timer> {
    let shard_leases = own(store, 1).await;
    let timers = create(store, numbered(0..7)).await;
    let to_claim: Vec<Timer> = [1, 2, 3, 6].map(|place| timers[place].clone()).into();
    let claimed = claim(store, &shard_leases, &to_claim).await;
    let settlements = [
        claimed[1].settle(Next::Completed { at: LATER }),
        claimed[2].settle(Next::Failed { at: LATER, error: "HTTP 500".to_owned() }),
        claimed[3].settle(Next::Expired { at: LATER, error: "expired".to_owned(), is_called: true }),
    ];
    assert_eq!(store.settle(&settlements).await.unwrap(), [true; 3]);
    store.cancel(timers[4].id(), None, LATER).await.unwrap();
    store.pause(timers[5].id(), None, None, LATER).await.unwrap();
    let mut now = Vec::new();
    for (timer, status) in timers.iter().zip(Status::ALL) {
        now.push(store.get(timer.id()).await.unwrap().unwrap());
        assert_eq!(now[now.len() - 1].status, status);
    }
    now
}
