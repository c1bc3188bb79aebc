//! Commands over a store with planned faults, for tests.

use std::sync::{Arc, Mutex};

use domain::{
    Callback, CallbackKind, Caller, Endpoint, Horizon, Invalid, Key, KindSet, ManualClock, Next, OnConflict, RequestedTime,
    Shard, Span, TimerId, Timestamp,
};
use store::{
    Claim, ClaimToken, Claimed, DueEntry, DueStore, Filter, Member, MembershipStore, NodeId, OnLocked, ShardCursor, TimerStore,
};
use store_testing::{Faulty, Model};

use crate::{Commands, NewTimerRequest, Rules, Searches, Stats, Stores, Target};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

pub(crate) struct Rig {
    pub commands: Commands,
    pub store: Arc<Faulty<Model>>,
    pub clock: Arc<ManualClock>,
    pub nudged: Arc<Mutex<Vec<DueEntry>>>,
}

pub(crate) fn rules() -> Rules {
    Rules {
        horizon: Horizon { min_delay: Span::from_secs(5), max_horizon: None },
        callbacks: KindSet::EMPTY.with(CallbackKind::Http),
        callback_check: Arc::new(|_, callback| match &callback.endpoint {
            Endpoint::Http(http) if http.url.host() == "denied" => Err(Invalid::new("url", "must not be denied")),
            _ => Ok(()),
        }),
    }
}

pub(crate) fn callback(host: &str) -> Callback {
    Callback::from_json(&format!(r#"{{"type":"http","url":"http://{host}/"}}"#)).unwrap()
}

/// A timer in an hour, with nothing else.
pub(crate) fn plain() -> NewTimerRequest {
    NewTimerRequest::new(RequestedTime::After(Span::from_secs(3600)), Target::Callback(callback("a")))
}

pub(crate) fn keyed(host: &str, on_conflict: OnConflict) -> NewTimerRequest {
    NewTimerRequest { key: Some(Key::parse("k").unwrap()), on_conflict, target: Target::Callback(callback(host)), ..plain() }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
        let nudged = Arc::new(Mutex::new(Vec::new()));
        let to = nudged.clone();
        let nudge = Arc::new(move |entries: &[DueEntry]| to.lock().unwrap().extend_from_slice(entries));
        let commands = Commands {
            stores: Stores::of(store.clone()),
            clock: clock.clone(),
            rules: rules(),
            nudge,
            caller: Caller::Administrator,
            searches: Searches::default(),
            stats: Stats::default(),
        };
        Self { commands, store, clock, nudged }
    }

    pub(crate) async fn count(&self) -> u64 {
        self.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap().timers
    }

    /// Creates a timer and returns its id.
    pub(crate) async fn created(&self) -> TimerId {
        self.commands.create(plain()).await.unwrap().timer().id()
    }

    /// Delivers all pending timers, as a scheduler would.
    pub(crate) async fn complete_all(&self) {
        self.settle_all(&Next::Completed { at: self.commands.clock.now() }).await;
    }

    /// Attempts all pending timers, with this result.
    pub(crate) async fn settle_all(&self, next: &Next) {
        let done: Vec<_> = self.claim_all().await.iter().map(|claimed| claimed.settle(next.clone())).collect();
        assert!(self.store.settle(&done).await.unwrap().iter().all(|counted| *counted));
    }

    /// Claims all pending timers, as a scheduler would; they are executing then.
    pub(crate) async fn claim_all(&self) -> Vec<Claimed> {
        self.store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(60)).await.unwrap();
        let shard_leases = self.store.acquire(NodeId(1), &[Shard(0)]).await.unwrap();
        let from = [ShardCursor { shard: Shard(0), after: None }];
        let entries = self.store.due(&from, Timestamp::MAX, 1000).await.unwrap();
        let claim = Claim { token: ClaimToken(7), shard_leases, lease: Span::from_secs(60), on_locked: OnLocked::Skip };
        self.store.claim(&claim, &entries).await.unwrap()
    }
}
