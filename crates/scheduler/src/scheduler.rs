use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Span, Timestamp};
use store::{Claimed, DueEntry, DueStore, MembershipStore, NodeId, Settlement, ShardLease, Store, StoreResult};

use crate::{
    Alarm, Claims, Config, SweepPosition, alarm::pause_until, claiming::Claimer, concurrency_limit::ConcurrencyLimit,
    loading::Loader, membership::Membership, nudges::Nudges, recovery::Recovery, retention::Retention,
    shared_window::SharedWindow, sweeping::Sweeper, window::Window,
};

/// How many deliveries are under way, how many may be, and whether due timers wait because their tenant gets no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permits {
    pub in_flight: usize,
    pub max: usize,
    pub is_exhausted: bool,
}

/// From when on a call counts as late: many such calls mean that the node is busy, before clients would call them late.
const LATE: Span = Span::from_micros_clamped(25_000);

/// The scheduler of one node: its parts, wired together. All its state is a copy of what the store says.
pub struct Scheduler {
    clock: Arc<dyn Clock>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) window: Arc<SharedWindow>,
    claimer: Claimer,
    claim_ahead: Span,
    alarm: Alarm,
    loader: Loader,
    pub(crate) sweeper: Sweeper,
    nudges: Nudges,
    recovery: Recovery,
    retention: Retention,
    calls: AtomicU64,
    late_calls: AtomicU64,
}

impl Scheduler {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: Config) -> Self {
        Self::as_node(NodeId(rand::random()), store, clock, config)
    }

    /// One with this identity, which no node may have had before.
    pub fn as_node(node: NodeId, store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: Config) -> Self {
        let permits = ConcurrencyLimit::new(config.in_flight_max, config.in_flight_per_destination_max);
        metrics::gauge!("timer_in_flight_max").set(config.in_flight_max as f64);
        metrics::gauge!("timer_in_flight_per_destination_max").set(config.in_flight_per_destination_max as f64);
        let window = Window::new(store.shards(), config.window_entries_max, permits);
        let window = Arc::new(SharedWindow::new(window));
        // Each part is given only the calls that it makes.
        let (due, nodes): (Arc<dyn DueStore>, Arc<dyn MembershipStore>) = (store.clone(), store);
        let membership = Arc::new(Membership::new(node, &nodes, &clock, &window, &config));
        Self {
            claimer: Claimer::new(&due, &clock, &membership, &window, &config),
            claim_ahead: config.claim_ahead,
            alarm: Alarm::coarse(),
            loader: Loader::new(&due, &clock, &window, config.look_ahead),
            sweeper: Sweeper::new(&due, &clock, &membership, &window, config.sweep_interval),
            nudges: Nudges::new(&nodes, &clock, &membership, &window, config.look_ahead),
            recovery: Recovery::new(&due, &membership, &window),
            retention: Retention::new(&due, &clock, &membership, config.retention),
            calls: AtomicU64::new(0),
            late_calls: AtomicU64::new(0),
            clock,
            membership,
            window,
        }
    }

    /// The same, which waits for the times of calls by this alarm.
    #[must_use]
    pub fn woken_by(self, alarm: Alarm) -> Self {
        Self { alarm, ..self }
    }

    // ── Claiming and what follows ──────────────────────────────────────────────────────────────────────────

    /// Completes as soon as there may be something to claim, and within a second.
    pub async fn wait(&self) {
        self.claimer.wait().await;
    }

    /// How long before its time a timer may be claimed.
    pub const fn claim_ahead(&self) -> Span {
        self.claim_ahead
    }

    /// Completes at this time, or somewhat before, and within a second: the caller looks at the time anyway.
    pub async fn wait_until(&self, at: Timestamp) {
        self.alarm.sleep(pause_until(at, self.clock.now())).await;
    }

    /// Claims what is due, or will be in a moment, as far as deliveries may start. An error leaves everything as it was: the entries are
    /// due again.
    pub async fn claim_once(&self) -> StoreResult<Claims> {
        let claims = self.claimer.claim_once().await?;
        let late_from = self.clock.now().saturating_sub(LATE);
        let late = claims.claimed.iter().filter(|claimed| claimed.entry.at <= late_from).count();
        self.late_calls.fetch_add(late as u64, Ordering::Relaxed);
        Ok(claims)
    }

    /// Whether a call for a timer that was claimed under this shard lease may be made now. While the lease or the clock is in doubt
    /// this waits for a heartbeat to tell; `false` means that another node may own the timer, or that the clock is wrong.
    pub async fn may_send(&self, shard_lease: ShardLease) -> bool {
        self.membership.may_send(shard_lease).await
    }

    /// The call of a claimed timer is over, and its permit is free for the next. What became of it is still to be recorded.
    pub fn called(&self, entry: &DueEntry) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.window.called(entry);
    }

    /// Claimed timers have been settled: those that are pending again enter the window. The same for claims of an owner that is
    /// gone, which have no permit here.
    pub fn settled(&self, settlements: &[Settlement]) {
        let again = self.window.settled(settlements);
        self.retention.settled(settlements);
        self.nudges.forward(&again);
        self.window.wake();
    }

    // ── Membership ─────────────────────────────────────────────────────────────────────────────────────────

    /// One heartbeat, with the shards that it hands over and acquires. Says how many shards are held.
    pub async fn beat_once(&self) -> StoreResult<usize> {
        self.membership.beat_once().await
    }

    /// Prepares to stop: from now on the node only finishes what is under way. Its shards go to other nodes at once.
    pub async fn leave(&self) -> StoreResult<()> {
        self.membership.leave().await
    }

    /// Ends the lease. Nothing is under way any more.
    pub async fn end_lease(&self) -> StoreResult<()> {
        self.membership.end_lease().await
    }

    /// Completes when there may be claims that no node will settle, and after `longest` in any case.
    pub async fn wait_for_take_over(&self, longest: Duration) {
        self.membership.wait_for_take_over(longest).await;
    }

    /// Claims that no node will settle, in the shards of this one.
    pub async fn expired_once(&self) -> StoreResult<Vec<Claimed>> {
        self.recovery.expired_once().await
    }

    // ── What fills the window ──────────────────────────────────────────────────────────────────────────────

    /// Tells the scheduler of timers that were created, moved or rescheduled: those of the near term enter the window, or are
    /// forwarded to the nodes that hold their shards. Best effort: what is lost here is found by the sweep.
    pub fn nudge(&self, entries: &[DueEntry]) {
        self.nudges.nudge(entries);
    }

    /// Waits until something has gathered for other nodes, and sends it. What cannot be sent is dropped.
    pub async fn send_nudges(&self) -> StoreResult<usize> {
        self.nudges.send().await
    }

    /// Waits until another node nudges this one, and takes in what belongs here.
    pub async fn receive_nudges(&self) -> StoreResult<usize> {
        self.nudges.receive().await
    }

    /// Reads ahead. Returns whether there is more to read at once.
    pub async fn load_once(&self) -> StoreResult<bool> {
        self.loader.load_once().await
    }

    /// Takes in what is overdue in the store and unknown to the window. Returns how many that were.
    pub async fn sweep_once(&self, position: &mut SweepPosition) -> StoreResult<usize> {
        self.sweeper.sweep_once(position).await
    }

    // ── What `timer dev` needs to move its clock ───────────────────────────────────────────────────────────

    /// Does `work` while nothing is in line, being delivered or being recorded, and nothing can begin to be; `None` if something is.
    pub fn while_idle<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.window.with(|window| window.is_idle().then(work))
    }

    // ── What is removed ────────────────────────────────────────────────────────────────────────────────────

    /// Whether it is for this node to remove what is old.
    pub fn is_purger(&self) -> bool {
        self.retention.is_purger()
    }

    /// Removes some of the timers that finished longer ago than they are retained. Returns how long to wait before the next
    /// batch, or `None` when there is no more.
    pub async fn purge_once(&self) -> StoreResult<Option<Duration>> {
        self.retention.purge_once().await
    }

    // ── What operators want to know ────────────────────────────────────────────────────────────────────────

    pub fn shards_held(&self) -> usize {
        self.membership.shards_held()
    }

    /// How late the oldest timer is that waits in memory. Long when receivers are slow, or when nothing can be claimed.
    pub fn lag(&self) -> Span {
        let oldest = self.window.with(|window| window.oldest());
        oldest.map_or(Span::ZERO, |at| self.clock.now().since(at))
    }

    /// How far this node's clock is ahead of the database's, in seconds, and whether that is too far for it to own shards.
    pub fn clock_skew(&self) -> (f64, bool) {
        self.membership.clock_skew()
    }

    pub fn in_memory(&self) -> usize {
        self.window.with(|window| window.len())
    }

    /// How many calls are over since this node started.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many of the calls since this node started were claimed 25 ms after their time, or later.
    pub fn late_calls(&self) -> u64 {
        self.late_calls.load(Ordering::Relaxed)
    }

    pub fn in_flight(&self) -> usize {
        self.window.with(|window| window.in_flight())
    }

    pub fn permits(&self) -> Permits {
        self.window.with(|window| Permits {
            in_flight: window.in_flight(),
            max: window.in_flight_max(),
            is_exhausted: window.is_exhausted(),
        })
    }
}
