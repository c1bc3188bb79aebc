use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Next, Shard, Span, Timestamp};
use store::{
    Claim, ClaimToken, Claimed, DueStore, Member, MembershipStore, NodeId, OnLocked, Settlement, ShardCursor, ShardLease, Sharded,
};
use store_partitioned::PartitionedStore;

use crate::{audit::Audit, network::Network};

pub const LEASE: Span = Span::from_millis(3_500);
/// What a node takes off its own lease.
const MARGIN: Duration = Duration::from_millis(500);
/// Longer than any simulation: a claim that no node recovers earlier stands.
const CLAIM_LEASE: Span = Span::from_secs(3_600);

/// A process: a heartbeat loop, a loop that claims and calls, and one that recovers.
pub struct Node {
    pub id: NodeId,
    pub store: Arc<PartitionedStore>,
    pub network: Arc<Network>,
    pub clock: Arc<dyn Clock>,
    pub audit: Arc<Audit>,
    pub stop: AtomicBool,
    state: Mutex<State>,
    tokens: Arc<AtomicI64>,
}

#[derive(Default)]
struct State {
    lease_end: Duration,
    held: Vec<ShardLease>,
}

impl Node {
    pub fn new(
        id: NodeId,
        store: PartitionedStore,
        network: Arc<Network>,
        clock: Arc<dyn Clock>,
        audit: Arc<Audit>,
        tokens: Arc<AtomicI64>,
    ) -> Self {
        let (store, stop) = (Arc::new(store), AtomicBool::new(false));
        Self { id, store, network, clock, audit, stop, state: Mutex::default(), tokens }
    }

    pub fn start(self: &Arc<Self>) {
        tokio::spawn(Arc::clone(self).beat());
        tokio::spawn(Arc::clone(self).fire());
        tokio::spawn(Arc::clone(self).recover());
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn has_lease(&self) -> bool {
        self.clock.monotonic() < self.state.lock().unwrap().lease_end
    }

    fn held(&self) -> Vec<ShardLease> {
        self.state.lock().unwrap().held.clone()
    }

    async fn beat(self: Arc<Self>) {
        let mut trusted_until = Duration::ZERO;
        while !self.is_stopped() {
            let begun = self.clock.monotonic();
            if let Ok(reply) = self.store.heartbeat(&Member::new(self.id), LEASE).await {
                let lease_end = begun + LEASE.as_duration() - MARGIN;
                // After a break one heartbeat is not enough: another node may have taken over while it was on its way.
                let was_away = self.clock.monotonic() >= trusted_until;
                trusted_until = lease_end;
                if was_away {
                    continue;
                }
                {
                    let mut state = self.state.lock().unwrap();
                    state.lease_end = lease_end;
                    state.held.clone_from(&reply.held);
                }
                self.audit.with(|books| books.lives(self.id, lease_end));
                let members = &reply.members;
                let rank = members.iter().position(|member| member.node == self.id);
                let is_mine = |shard: Shard| rank.is_some_and(|rank| usize::from(shard.0) % members.len() == rank);
                let surplus: Vec<ShardLease> = reply.held.iter().copied().filter(|lease| !is_mine(lease.shard)).collect();
                if !surplus.is_empty() {
                    self.state.lock().unwrap().held.retain(|lease| !surplus.contains(lease));
                    let _ = self.store.release(self.id, &surplus).await;
                }
                let missing: Vec<Shard> = (0..self.store.shards())
                    .map(Shard)
                    .filter(|shard| is_mine(*shard) && reply.held.iter().all(|lease| lease.shard != *shard))
                    .collect();
                if !missing.is_empty()
                    && let Ok(taken) = self.store.acquire(self.id, &missing).await
                {
                    self.state.lock().unwrap().held.extend(taken);
                }
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn fire(self: Arc<Self>) {
        while !self.is_stopped() {
            tokio::time::sleep(Duration::from_millis(40)).await;
            let held = self.held();
            if !self.has_lease() || held.is_empty() {
                continue;
            }
            let from: Vec<ShardCursor> = held.iter().map(|lease| ShardCursor { shard: lease.shard, after: None }).collect();
            let Ok(entries) = self.store.due(&from, self.clock.now(), 8).await else { continue };
            if entries.is_empty() || !self.has_lease() {
                continue;
            }
            let token = ClaimToken(self.tokens.fetch_add(1, Ordering::Relaxed));
            self.audit.with(|books| books.claims(self.id, token));
            let claim = Claim { token, shard_leases: held, lease: CLAIM_LEASE, on_locked: OnLocked::Skip };
            let mut is_read_back = false;
            let claimed = loop {
                match self.store.claim(&claim, &entries).await {
                    Ok(claimed) => break claimed,
                    Err(error) if error.is_not_done() && !is_read_back => break Vec::new(),
                    Err(_) => is_read_back = true,
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            for claimed in claimed {
                self.audit.with(|books| books.handed_out(claimed.entry.id, claimed.token, is_read_back));
                tokio::spawn(Arc::clone(&self).deliver(claimed));
            }
        }
    }

    /// One call: only under a lease that stands.
    async fn deliver(self: Arc<Self>, claimed: Claimed) {
        self.network.travel().await;
        while !self.has_lease() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.network.travel().await;
        if !self.has_lease() {
            // The lease ran out in between: the claim is left to be recovered, or settled as not called.
            let again = Next::Pending { at: claimed.entry.at, attempt: 0, error: None };
            self.settle(&[claimed.settle(again)]).await;
            return;
        }
        self.audit.with(|books| books.called(claimed.entry.id));
        self.network.travel().await;
        self.settle(&[claimed.settle(Next::Completed { at: self.clock.now() })]).await;
    }

    async fn settle(&self, batch: &[Settlement]) {
        while self.store.settle(batch).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn recover(self: Arc<Self>) {
        while !self.is_stopped() {
            tokio::time::sleep(Duration::from_millis(700)).await;
            if !self.has_lease() {
                continue;
            }
            let relying = self.audit.with(|books| books.relying(self.clock.monotonic()));
            let Ok(expired) = self.store.expired_claims(&self.held(), 100).await else { continue };
            let mut batch = Vec::with_capacity(expired.len());
            for claimed in expired {
                let again = Next::Pending { at: Timestamp::max(claimed.entry.at, self.clock.now()), attempt: 1, error: None };
                // Counted before it is known whether it counts: it may count although the answer is lost.
                self.audit.with(|books| books.recovered(claimed.entry.id, claimed.token, &relying));
                batch.push(claimed.settle(again));
            }
            // As the engine does it: together. One after another they would take minutes over a slow network.
            let _ = self.store.settle(&batch).await;
        }
    }
}
