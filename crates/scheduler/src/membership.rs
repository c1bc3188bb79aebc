//! This node as one of several: its lease, its shards, and what it may do by what it knows of both.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Shard, Span, Timestamp};
use store::{HeartbeatReply, Member, MembershipStore, NodeId, ShardLease, StoreError, StoreResult};
use tokio::sync::Notify;

use crate::{
    Config, assignment,
    clock_check::ClockCheck,
    held_shards::{Changes, HeldShards},
    rejoin_grace::RejoinGrace,
    shared_window::SharedWindow,
};

/// The membership of this node. It renews the lease by heartbeats, takes and hands over shards, and opens and closes them in the
/// window.
pub struct Membership {
    store: Arc<dyn MembershipStore>,
    clock: Arc<dyn Clock>,
    window: Arc<SharedWindow>,
    node: NodeId,
    name: String,
    version: String,
    started_at: Timestamp,
    lease: Span,
    state: Mutex<State>,
    /// Held during a heartbeat: what an older one has read must not undo what a newer one has done.
    beating: tokio::sync::Mutex<()>,
    /// How many nodes there are, this one included. Outside the lock, because each created timer looks at it.
    members: AtomicUsize,
    /// The lease was renewed, or what is held has changed.
    renewed: Notify,
    /// Shards came in or a node is gone: there may be claims that no node will settle.
    taken_over: Notify,
}

/// What the node knows from its heartbeats. It changes as a whole: a reader never sees the shards of one heartbeat with the clock
/// check of another.
#[derive(Debug, Default)]
struct State {
    held_shards: HeldShards,
    clock_check: ClockCheck,
    rejoin_grace: RejoinGrace,
    /// The nodes that lived at the last heartbeat.
    seen: BTreeSet<NodeId>,
    is_leaving: bool,
    /// Shards belong here that their owner has not handed over yet.
    awaits_shards: bool,
}

/// A heartbeat that was answered, with what the clocks of this machine said.
struct HeartbeatSample {
    reply: HeartbeatReply,
    asked_at: Timestamp,
    begun: Duration,
    answered: Duration,
}

/// What a heartbeat has changed.
struct Learned {
    shards: Changes,
    is_node_gone: bool,
    clock_before: ClockCheck,
    clock_now: ClockCheck,
}

impl HeartbeatSample {
    fn compare_clocks(&self, check: &mut ClockCheck) {
        check.compare(self.asked_at, self.begun, self.answered.saturating_sub(self.begun), self.reply.now);
    }
}

impl State {
    fn learn(&mut self, sample: &HeartbeatSample, was_away: bool, lease: Duration) -> Learned {
        let members = &sample.reply.members;
        let living: BTreeSet<NodeId> = members.iter().map(|member| member.node).collect();
        // Nodes may also have come meanwhile, so that their number says nothing.
        let is_node_gone = !self.seen.is_subset(&living);
        self.seen = living;
        self.rejoin_grace.note(was_away, members.len(), sample.answered, lease);
        let shards = self.held_shards.confirm(&sample.reply.held, sample.begun, was_away, lease);
        let clock_before = self.clock_check;
        sample.compare_clocks(&mut self.clock_check);
        Learned { shards, is_node_gone, clock_before, clock_now: self.clock_check }
    }

    const fn takes_shards(&self) -> bool {
        !self.is_leaving && self.clock_check.is_right()
    }
}

impl Membership {
    /// The membership of `node`, an identity that no node may have had before.
    pub fn new(
        node: NodeId,
        store: &Arc<dyn MembershipStore>,
        clock: &Arc<dyn Clock>,
        window: &Arc<SharedWindow>,
        config: &Config,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            started_at: clock.now(),
            clock: Arc::clone(clock),
            window: Arc::clone(window),
            node,
            name: config.name.clone(),
            version: config.version.clone(),
            lease: config.node_lease,
            state: Mutex::default(),
            beating: tokio::sync::Mutex::default(),
            members: AtomicUsize::new(1),
            renewed: Notify::new(),
            taken_over: Notify::new(),
        }
    }

    // ── Heartbeats ─────────────────────────────────────────────────────────────────────────────────────────

    /// One heartbeat: renews the lease, learns which nodes live and what is held, hands over what belongs to another node, and
    /// acquires what belongs here and is free. Says how many shards are held.
    ///
    /// Once the node is leaving, or while its clock is wrong, nothing belongs to it.
    pub async fn beat_once(&self) -> StoreResult<usize> {
        let _beating = self.beating.lock().await;
        let mut reply = self.renew().await?;
        // The comparison of the clocks that came with the heartbeat is newer than what it told other nodes of this one.
        let takes_shards = self.state().takes_shards();
        let itself = reply.members.iter_mut().find(|member| member.node == self.node);
        itself.into_iter().for_each(|member| member.takes_shards = takes_shards);
        let mine = assignment::shards_of(self.node, &reply.members, self.store.shards());
        let surplus: Vec<ShardLease> =
            reply.held.iter().copied().filter(|shard_lease| !mine.contains(&shard_lease.shard)).collect();
        let missing: Vec<Shard> =
            mine.into_iter().filter(|shard| reply.held.iter().all(|shard_lease| shard_lease.shard != *shard)).collect();
        if !surplus.is_empty() {
            self.hand_over(&surplus).await?;
        }
        let may_acquire = {
            let mut state = self.state();
            state.awaits_shards = false;
            state.rejoin_grace.has_ended()
        };
        if !missing.is_empty() && may_acquire {
            self.acquire(&missing).await?;
        }
        Ok(self.shards_held())
    }

    async fn renew(&self) -> StoreResult<HeartbeatReply> {
        let lease = self.lease.as_duration();
        let (mut check, mut lease_end) = {
            let state = self.state();
            (state.clock_check, state.held_shards.lease_end())
        };
        let mut was_away = false;
        // A node that found this one dead may have taken its shards while the first heartbeat was not yet visible, and that heartbeat
        // does not see it either. A node that comes later is seen by the second heartbeat, or sees that this node lives.
        let sample = loop {
            let sample = self.send_heartbeat().await?;
            if !check.has_jumped(self.clock.now(), sample.answered) && lease_end.is_none_or(|end| sample.answered <= end) {
                break sample;
            }
            was_away = true;
            sample.compare_clocks(&mut check);
            lease_end = Some(sample.begun + lease);
        };
        let members = sample.reply.members.len();
        self.members.store(members, Ordering::Relaxed);
        metrics::gauge!("timer_nodes").set(members as f64);
        let learned = self.state().learn(&sample, was_away, lease);
        if learned.is_node_gone {
            // What it claimed in shards that it then handed over is now for their owners to recover.
            self.taken_over.notify_one();
        }
        report_clock(learned.clock_before, learned.clock_now);
        self.apply(&learned.shards);
        self.renewed.notify_waiters();
        self.window.wake();
        Ok(sample.reply)
    }

    async fn send_heartbeat(&self) -> StoreResult<HeartbeatSample> {
        let member = self.member();
        let (asked_at, begun) = (self.clock.now(), self.clock.monotonic());
        let reply = self.in_time(self.store.heartbeat(&member, self.lease)).await?;
        Ok(HeartbeatSample { reply, asked_at, begun, answered: self.clock.monotonic() })
    }

    fn member(&self) -> Member {
        let state = self.state();
        Member {
            node: self.node,
            name: self.name.clone(),
            version: self.version.clone(),
            started_at: self.started_at,
            takes_shards: state.takes_shards(),
            skew_micros: state.clock_check.skew_micros(),
        }
    }

    /// A call that hangs must not take the whole lease: the next heartbeat may get through, and tells what came of this one.
    async fn in_time<T>(&self, call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        let time_max = self.lease.as_duration() / 3;
        let answer = tokio::time::timeout(time_max, call).await;
        answer.unwrap_or_else(|_| Err(StoreError::Unknown(format!("no answer within {time_max:?}").into())))
    }

    async fn acquire(&self, missing: &[Shard]) -> StoreResult<()> {
        let taken = self.in_time(self.store.acquire(self.node, missing)).await?;
        let gained = {
            let mut state = self.state();
            state.awaits_shards = taken.len() < missing.len();
            state.held_shards.add(&taken)
        };
        self.apply(&Changes { gained, lost: Vec::new() });
        Ok(())
    }

    /// Gives shards to the nodes that they belong to. What is under way in them is finished here: it stays ours while we live.
    async fn hand_over(&self, given: &[ShardLease]) -> StoreResult<()> {
        self.state().held_shards.hand_over(given);
        let lost = given.iter().map(|shard_lease| shard_lease.shard).collect();
        self.window.apply(&Changes { gained: Vec::new(), lost });
        self.in_time(self.store.release(self.node, given)).await?;
        metrics::counter!("timer_shards_handed_over_total").increment(given.len() as u64);
        metrics::gauge!("timer_shards_owned").set(self.shards_held() as f64);
        tracing::info!(shards = given.len(), "handed shards over");
        Ok(())
    }

    fn apply(&self, changes: &Changes) {
        // Before anything is told of it: recovery, which a take-over wakes, must find the shard open.
        self.window.apply(changes);
        if !changes.lost.is_empty() {
            metrics::counter!("timer_leases_lost_total").increment(1);
            metrics::counter!("timer_shards_lost_total").increment(changes.lost.len() as u64);
            tracing::warn!(shards = changes.lost.len(), "lost shards: the lease ran out, and another node took them");
        }
        if !changes.gained.is_empty() {
            metrics::counter!("timer_shards_gained_total").increment(changes.gained.len() as u64);
            tracing::info!(shards = changes.gained.len(), "took over shards");
            self.taken_over.notify_one();
        }
        metrics::gauge!("timer_shards_owned").set(self.shards_held() as f64);
        metrics::gauge!("timer_shards").set(f64::from(self.store.shards()));
    }

    /// Prepares to stop: from now on the node only finishes what is under way. Its shards go to other nodes at once.
    pub async fn leave(&self) -> StoreResult<()> {
        self.state().is_leaving = true;
        self.beat_once().await?;
        Ok(())
    }

    /// Ends the lease. Nothing is under way any more.
    pub async fn end_lease(&self) -> StoreResult<()> {
        {
            let mut state = self.state();
            let held = state.held_shards.all();
            state.held_shards.hand_over(&held);
        }
        self.store.leave(self.node).await
    }

    /// How often to call [`beat_once`](Self::beat_once): so often that a pause of nine tenths of a lease, whenever it begins, does
    /// not let it run out.
    pub fn beat_interval(&self) -> Duration {
        self.lease.as_duration() / 14
    }

    /// Completes when there may be claims that no node will settle, and after `longest` in any case.
    pub async fn wait_for_take_over(&self, longest: Duration) {
        // Either way there is something to look at.
        let _ = tokio::time::timeout(longest, self.taken_over.notified()).await;
    }

    // ── What the node may do ───────────────────────────────────────────────────────────────────────────────

    /// Whether a call for a timer that was claimed under this shard lease may be made now. While the lease or the clock is in doubt
    /// this waits for a heartbeat to tell; `false` means that another node may own the timer, or that the clock is wrong.
    pub async fn may_send(&self, shard_lease: ShardLease) -> bool {
        loop {
            let renewed = self.renewed.notified();
            let monotonic = self.clock.monotonic();
            {
                let State { held_shards, clock_check, .. } = &*self.state();
                if clock_check.is_wrong() || held_shards.is_fenced_off(shard_lease) {
                    return false;
                }
                // A machine that was suspended has a monotonic clock that knows nothing of it, and a wall clock that does.
                if held_shards.is_safe(monotonic) && clock_check.may_fire_at(self.clock.now(), monotonic) {
                    return true;
                }
            }
            renewed.await;
        }
    }

    /// Whether what is due at `now`, which this clock has just said, may be claimed.
    pub fn may_claim(&self, now: Timestamp) -> bool {
        let monotonic = self.clock.monotonic();
        let state = self.state();
        state.clock_check.may_fire_at(now, monotonic) && state.held_shards.may_claim(monotonic)
    }

    // ── What the node knows ────────────────────────────────────────────────────────────────────────────────

    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// How many nodes live, this one included.
    pub fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }

    pub fn shard_leases(&self) -> Vec<ShardLease> {
        self.state().held_shards.all()
    }

    pub fn shards_held(&self) -> usize {
        self.state().held_shards.len()
    }

    pub fn holds_shard(&self, shard: Shard) -> bool {
        self.state().held_shards.holds_shard(shard)
    }

    /// Those of `items` whose shard this node does not hold.
    pub fn of_other_nodes<T>(&self, items: impl Iterator<Item = T>, shard: impl Fn(&T) -> Shard) -> Vec<T> {
        let state = self.state();
        items.filter(|item| !state.held_shards.holds_shard(shard(item))).collect()
    }

    /// Whether shards belong here that their owner has not handed over yet.
    pub fn awaits_shards(&self) -> bool {
        self.state().awaits_shards
    }

    /// How far this node's clock is ahead of the database's, in seconds, and whether that is too far for it to own shards.
    pub fn clock_skew(&self) -> (f64, bool) {
        let check = self.state().clock_check;
        (skew_seconds(check), check.is_wrong())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The next heartbeat mends what a panic has left undone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report_clock(before: ClockCheck, now: ClockCheck) {
    let skew = skew_seconds(now);
    metrics::gauge!("timer_clock_skew_seconds").set(skew);
    match (before.is_wrong(), now.is_wrong()) {
        (false, true) => tracing::error!(
            skew_seconds = skew,
            "the clock of this machine differs from the database's: this node fires nothing until they agree"
        ),
        (true, false) => tracing::info!(skew_seconds = skew, "the clock of this machine agrees with the database's again"),
        _ => {}
    }
}

fn skew_seconds(check: ClockCheck) -> f64 {
    check.skew_micros() as f64 / 1e6
}
