use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use domain::{Clock, Metric, Span, Timestamp};
use store::{NodeId, Store};
use tokio::sync::Notify;

use crate::{
    Alarm, clock_check::ClockCheck, concurrency_limit::ConcurrencyLimit, held_shards::HeldShards, nudge_buffer::NudgeBuffer,
    rejoin_grace::RejoinGrace, window::Window,
};

/// What can be set about the scheduler.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many entries may wait in memory.
    pub window_entries_max: usize,
    /// How far ahead the window is filled.
    pub look_ahead: Span,
    /// The largest batch to claim at once.
    pub claim_batch_max: usize,
    /// How many deliveries may be under way, in all and to one destination.
    pub in_flight_max: usize,
    pub in_flight_per_destination_max: usize,
    /// For how long a heartbeat counts. After a node's death nobody fires its timers for that long.
    pub node_lease: Span,
    /// For how long a timer is claimed: longer than any delivery can last.
    pub claim_lease: Span,
    /// How often what was missed is looked for.
    pub sweep_interval: Duration,
    /// For how long finished timers are kept.
    pub retention: Span,
    /// What people call this node, and what it runs.
    pub name: String,
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window_entries_max: 1_000_000,
            look_ahead: Span::from_secs(600),
            claim_batch_max: 256,
            in_flight_max: 2_048,
            in_flight_per_destination_max: 256,
            node_lease: Span::from_millis(3_500),
            claim_lease: Span::from_secs(600),
            sweep_interval: Duration::from_secs(1),
            retention: Span::from_secs(30 * 24 * 3600),
            name: String::new(),
            version: String::new(),
        }
    }
}

/// How many deliveries are under way, how many may be, and whether due timers wait because their tenant gets no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permits {
    pub in_flight: usize,
    pub max: usize,
    pub is_exhausted: bool,
}

/// The scheduler of one node. All its state is a copy of what the store says, behind locks that are held for
/// moments and never across a wait.
pub struct Scheduler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    pub(crate) node: NodeId,
    pub(crate) started_at: Timestamp,
    window: Mutex<Window>,
    held_shards: Mutex<HeldShards>,
    clock_check: Mutex<ClockCheck>,
    rejoin_grace: Mutex<RejoinGrace>,
    nudge_buffer: Mutex<NudgeBuffer>,
    /// How many claims were made: each has a name of its own.
    pub(crate) claims: AtomicU64,
    /// How many the store has not answered yet.
    pub(crate) claims_under_way: AtomicUsize,
    /// Who lived at the last heartbeat.
    seen: Mutex<BTreeSet<NodeId>>,
    /// How many nodes there are, this one included.
    pub(crate) members: AtomicUsize,
    alarm: Alarm,
    /// Something may be ready earlier than the loop thinks.
    pub(crate) wake: Notify,
    /// What is held has changed, or the lease was renewed.
    pub(crate) renewed: Notify,
    /// Shards came in or a node is gone: there may be claims that nobody will settle.
    pub(crate) taken_over: Notify,
    /// Shards came in of which nothing has been read.
    pub(crate) opened: Notify,
    /// There is something to tell others.
    pub(crate) outgoing: Notify,
    pub(crate) leaving: AtomicBool,
    /// Shards belong here that somebody else has not given away yet.
    pub(crate) awaits_shards: AtomicBool,
    /// How many timers have finished here since the last purge.
    pub(crate) finished: AtomicUsize,
}

impl Scheduler {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: Config) -> Self {
        Self::as_node(NodeId(rand::random()), store, clock, config)
    }

    /// One with this identity, which nobody may have had before.
    pub fn as_node(node: NodeId, store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: Config) -> Self {
        let permits = ConcurrencyLimit::new(config.in_flight_max, config.in_flight_per_destination_max);
        let window = Window::new(store.shards(), config.window_entries_max, permits);
        Self {
            store,
            started_at: clock.now(),
            clock,
            config,
            node,
            window: Mutex::new(window),
            held_shards: Mutex::default(),
            clock_check: Mutex::default(),
            rejoin_grace: Mutex::default(),
            nudge_buffer: Mutex::default(),
            claims: AtomicU64::new(0),
            claims_under_way: AtomicUsize::new(0),
            seen: Mutex::default(),
            members: AtomicUsize::new(1),
            alarm: Alarm::coarse(),
            wake: Notify::new(),
            renewed: Notify::new(),
            taken_over: Notify::new(),
            opened: Notify::new(),
            outgoing: Notify::new(),
            leaving: AtomicBool::new(false),
            awaits_shards: AtomicBool::new(false),
            finished: AtomicUsize::new(0),
        }
    }

    /// The same, woken by this alarm.
    #[must_use]
    pub fn woken_by(self, alarm: Alarm) -> Self {
        Self { alarm, ..self }
    }

    /// Completes when there may be claims that nobody will settle, and after `longest` in any case.
    pub async fn wait_for_take_over(&self, longest: Duration) {
        // Either way there is something to look at.
        let _ = tokio::time::timeout(longest, self.taken_over.notified()).await;
    }

    /// Completes as soon as there may be something to claim: the next timer is due, a permit has become free, or an
    /// earlier timer came in. Never waits longer than a second, because the wall clock may jump.
    pub async fn wait(&self) {
        const LONGEST: Duration = Duration::from_secs(1);
        // Registered before the window is read: a wake-up in between is not lost.
        let woken = self.wake.notified();
        // Nothing can be claimed on a lease or by a clock in doubt; the next heartbeat wakes this up.
        let now = self.now();
        let next = if self.may_claim(now) { self.window().next_due() } else { None };
        let pause = next.map_or(LONGEST, |at| at.since(now).as_duration().min(LONGEST));
        tokio::select! {
            biased;
            () = woken => {}
            () = self.alarm.sleep(pause) => {}
        }
    }

    // ── What operators want to know ────────────────────────────────────────────────────────────────────────

    pub fn shards_held(&self) -> usize {
        self.held_shards().len()
    }

    /// How late the oldest timer is that waits in memory. Long when receivers are slow, or when nothing can be claimed.
    pub fn lag(&self) -> Span {
        let oldest = self.window().oldest();
        oldest.map_or(Span::ZERO, |at| self.clock.now().since(at))
    }

    /// How far this node's clock is ahead of the database's, in seconds, and whether that is too far for it to own shards.
    pub fn clock_skew(&self) -> (f64, bool) {
        let check = *self.clock_check();
        (check.skew_micros() as f64 / 1e6, check.is_wrong())
    }

    pub fn in_memory(&self) -> usize {
        self.window().len()
    }

    pub fn in_flight(&self) -> usize {
        self.window().in_flight()
    }

    pub fn permits(&self) -> Permits {
        let window = self.window();
        Permits { in_flight: window.in_flight(), max: window.in_flight_max(), is_exhausted: window.is_exhausted() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn window(&self) -> MutexGuard<'_, Window> {
        // A panic while it was locked can only have left out or repeated an entry, which the store sorts out.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn held_shards(&self) -> MutexGuard<'_, HeldShards> {
        self.held_shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clock_check(&self) -> MutexGuard<'_, ClockCheck> {
        self.clock_check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rejoin_grace(&self) -> MutexGuard<'_, RejoinGrace> {
        self.rejoin_grace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, BTreeSet<NodeId>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn nudge_buffer(&self) -> MutexGuard<'_, NudgeBuffer> {
        self.nudge_buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The metrics of this crate. Those of tasks that run elsewhere are counted under the same name.
pub const METRICS: &[Metric] = &[
    Metric::gauge("timer_pending_in_memory", "Timers of the near term that wait in memory"),
    Metric::gauge("timer_in_flight", "Deliveries under way"),
    Metric::gauge(
        "timer_permits_exhausted",
        "1 while due timers wait because their tenant holds all the permits, or all the memory, that it may hold now",
    ),
    Metric::gauge("timer_shards_owned", "Shards this node holds"),
    Metric::gauge("timer_nodes", "Nodes that live, this one included"),
    Metric::gauge("timer_clock_skew_seconds", "How far this node's clock is ahead of the database's"),
    Metric::counter("timer_shards_gained_total", "Shards that came to this node"),
    Metric::counter("timer_shards_handed_over_total", "Shards that this node gave to others"),
    Metric::counter("timer_shards_lost_total", "Shards that were taken from this node"),
    Metric::counter("timer_leases_lost_total", "Times that this node's lease ran out and others took its shards"),
    Metric::counter("timer_nudges_sent_total", "Timers of other nodes that they were told of"),
    Metric::counter("timer_nudges_received_total", "Timers that other nodes told of"),
    Metric::counter(
        "timer_nudges_dropped_total",
        "Timers of other nodes that they could not be told of; they find them themselves",
    ),
    Metric::counter("timer_claims_total", "Timers claimed for delivery"),
    Metric::counter("timer_claims_refused_total", "Due entries that were no longer pending, or moved, when claimed"),
    Metric::histogram("timer_claim_batch_size", "Timers asked for in one claim"),
    Metric::counter("timer_loaded_total", "Timers read ahead into memory"),
    Metric::counter("timer_sweep_repaired_total", "Overdue timers that only the sweep found"),
    Metric::counter("timer_recovered_total", "Claims taken over from a node that did not settle them"),
    Metric::counter("timer_purged_total", "Finished timers removed because of their age"),
    Metric::counter("timer_task_errors_total", "Background steps that failed and will be tried again, by task")
        .by(&[("task", &["beat", "tell", "hear", "load", "sweep", "purge", "claim", "recover", "commands"])]),
];
