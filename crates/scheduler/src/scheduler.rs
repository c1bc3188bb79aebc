use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Next, Shard, Span, Timestamp};
use store::{DueEntry, NodeId, Settlement, Store, StoreResult, Tenure};
use tokio::sync::Notify;

use crate::{
    slots::Slots,
    tenancy::{Changes, Tenancy},
    window::Window,
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
    /// For how long a shard is taken. After a node's death nobody fires its timers for that long.
    pub shard_lease: Span,
    /// For how long a timer is claimed: longer than any delivery can last.
    pub claim_lease: Span,
    /// How often what was missed is looked for.
    pub sweep_interval: Duration,
    /// For how long finished timers are kept.
    pub retention: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window_entries_max: 1_000_000,
            look_ahead: Span::from_secs(600),
            claim_batch_max: 1024,
            in_flight_max: 1024,
            in_flight_per_destination_max: 64,
            shard_lease: Span::from_secs(3),
            claim_lease: Span::from_secs(600),
            sweep_interval: Duration::from_secs(1),
            retention: Span::from_secs(30 * 24 * 3600),
        }
    }
}

/// The scheduler of one node. All its state is a copy of what the store says, behind locks that are held for
/// moments and never across a wait.
pub struct Scheduler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    node: NodeId,
    window: Mutex<Window>,
    tenancy: Mutex<Tenancy>,
    /// Something may be ready earlier than the loop thinks.
    wake: Notify,
    /// What is held has changed, or a lease was renewed.
    renewed: Notify,
    /// Shards came in, perhaps with claims of an owner that is gone.
    taken_over: Notify,
    leaving: AtomicBool,
    /// How many timers have finished here since the last purge.
    pub(crate) finished: AtomicUsize,
}

impl Scheduler {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, config: Config) -> Self {
        let slots = Slots::new(config.in_flight_max, config.in_flight_per_destination_max);
        let window = Window::new(store.shards(), config.window_entries_max, slots);
        Self {
            store,
            clock,
            config,
            node: NodeId(rand::random()),
            window: Mutex::new(window),
            tenancy: Mutex::default(),
            wake: Notify::new(),
            renewed: Notify::new(),
            taken_over: Notify::new(),
            leaving: AtomicBool::new(false),
            finished: AtomicUsize::new(0),
        }
    }

    /// Tells the scheduler of timers that were created, moved or rescheduled: those of the near term enter the window.
    /// Best effort: what is lost here is found by the sweep.
    pub fn nudge(&self, entries: &[DueEntry]) {
        let earlier = {
            let mut window = self.window();
            let next_before = window.next_due();
            let admitted = entries.iter().filter(|entry| window.admit(**entry)).count();
            admitted > 0 && window.next_due() != next_before
        };
        if earlier {
            self.wake.notify_one();
        }
    }

    /// Claimed timers have been settled: their places are free, and those that are pending again enter the window. The same for
    /// claims of an owner that is gone, which have no place here.
    pub fn settled(&self, settlements: &[Settlement]) {
        {
            let mut window = self.window();
            for settlement in settlements {
                window.done(&settlement.entry);
                if let Next::Pending { at, .. } | Next::Again { at } = settlement.next {
                    window.admit(DueEntry { at, ..settlement.entry });
                }
            }
        }
        let is_final = |settlement: &&Settlement| matches!(settlement.next, Next::Completed { .. } | Next::Failed { .. });
        self.finished.fetch_add(settlements.iter().filter(is_final).count(), Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Completes when shards have come in whose claims should be looked at, and after `longest` in any case.
    pub async fn wait_for_take_over(&self, longest: Duration) {
        // Either way there is something to look at.
        let _ = tokio::time::timeout(longest, self.taken_over.notified()).await;
    }

    /// Completes as soon as there may be something to claim: the next timer is due, a place has become free, or an
    /// earlier timer came in. Never waits longer than a second, because the wall clock may jump.
    pub async fn wait(&self) {
        const LONGEST: Duration = Duration::from_secs(1);
        // Registered before the window is read: a wake-up in between is not lost.
        let woken = self.wake.notified();
        // Nothing can be claimed on a lease in doubt; its renewal wakes this up.
        let next = if self.may_claim() { self.window().next_due() } else { None };
        let pause = next.map_or(LONGEST, |at| at.since(self.clock.now()).as_duration().min(LONGEST));
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    // ── Ownership ──────────────────────────────────────────────────────────────────────────────────────────

    /// Extends what is held and takes what is free. Says how many shards are held.
    ///
    /// Once the node is leaving, it takes nothing more, and gives back what it has nothing under way in.
    pub async fn renew_once(&self) -> StoreResult<usize> {
        let is_leaving = self.leaving.load(Ordering::Relaxed);
        if is_leaving {
            self.release_idle().await?;
        }
        let mut held = self.tenancy().all();
        if !held.is_empty() {
            let begun = self.clock.steady();
            held = self.store.renew(self.node, &held, self.config.shard_lease).await?;
            self.confirm(&held, begun);
        }
        let free: Vec<Shard> =
            (0..self.store.shards()).map(Shard).filter(|shard| held.iter().all(|tenure| tenure.shard != *shard)).collect();
        if !free.is_empty() && !is_leaving {
            let begun = self.clock.steady();
            held.extend(self.store.acquire(self.node, &free, self.config.shard_lease).await?);
            self.confirm(&held, begun);
        }
        Ok(held.len())
    }

    fn confirm(&self, held: &[Tenure], begun: Duration) {
        let changes = self.tenancy().confirm(held, begun, self.config.shard_lease.as_duration());
        self.apply(&changes);
        self.renewed.notify_waiters();
        self.wake.notify_one();
    }

    fn apply(&self, changes: &Changes) {
        let mut window = self.window();
        for shard in &changes.lost {
            metrics::counter!("timer_shards_lost_total").increment(1);
            tracing::warn!(shard = shard.0, "lost a shard: another node took it, or its lease ran out unnoticed");
            window.close(*shard);
        }
        for shard in &changes.gained {
            window.open(*shard);
        }
        if !changes.gained.is_empty() {
            tracing::info!(shards = changes.gained.len(), "took over shards");
            self.taken_over.notify_one();
        }
        metrics::gauge!("timer_shards_owned").set(self.tenancy().len() as f64);
    }

    /// The node is about to stop: from now on it only finishes what is under way. Shards in which nothing is go to
    /// others at once.
    pub async fn leave(&self) -> StoreResult<()> {
        self.leaving.store(true, Ordering::Relaxed);
        self.release_idle().await
    }

    async fn release_idle(&self) -> StoreResult<()> {
        let busy = self.window().busy_shards();
        let (kept, idle): (Vec<_>, Vec<_>) = self.tenancy().all().into_iter().partition(|tenure| busy.contains(&tenure.shard));
        self.give_back(&idle, &kept).await
    }

    /// Hands every shard back, so that others need not wait for the leases to run out.
    pub async fn release(&self) -> StoreResult<()> {
        let held = self.tenancy().all();
        self.give_back(&held, &[]).await
    }

    async fn give_back(&self, given: &[Tenure], kept: &[Tenure]) -> StoreResult<()> {
        if given.is_empty() {
            return Ok(());
        }
        self.store.release(self.node, given).await?;
        self.tenancy().keep(kept);
        let mut window = self.window();
        given.iter().for_each(|tenure| window.close(tenure.shard));
        Ok(())
    }

    /// Whether a call for a timer of this tenure may be made now. While the lease is in doubt this waits for it to be
    /// renewed; `false` means that the shard is in other hands.
    pub async fn may_send(&self, tenure: Tenure) -> bool {
        loop {
            let renewed = self.renewed.notified();
            {
                let tenancy = self.tenancy();
                if !tenancy.holds(tenure) {
                    return false;
                }
                if tenancy.is_safe(self.clock.steady()) {
                    return true;
                }
            }
            renewed.await;
        }
    }

    pub(crate) fn tenures(&self) -> Vec<Tenure> {
        self.tenancy().all()
    }

    pub(crate) fn may_claim(&self) -> bool {
        self.tenancy().is_safe(self.clock.steady())
    }

    // ── What operators want to know ────────────────────────────────────────────────────────────────────────

    pub fn shards_held(&self) -> usize {
        self.tenancy().len()
    }

    /// How late the oldest timer is that waits in memory. Long when receivers are slow, or when nothing can be claimed.
    pub fn lag(&self) -> Span {
        let oldest = self.window().oldest();
        oldest.map_or(Span::ZERO, |at| self.clock.now().since(at))
    }

    pub fn in_memory(&self) -> usize {
        self.window().len()
    }

    pub fn in_flight(&self) -> usize {
        self.window().in_flight()
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

    fn tenancy(&self) -> MutexGuard<'_, Tenancy> {
        self.tenancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names and explains every metric of this crate.
pub fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_gauge!("timer_pending_in_memory", "Timers of the near term that wait in memory");
    describe_gauge!("timer_in_flight", "Deliveries under way");
    describe_gauge!("timer_shards_owned", "Shards this node holds");
    describe_counter!("timer_shards_lost_total", "Shards that were taken from this node");
    describe_counter!("timer_claims_total", "Timers claimed for delivery");
    describe_counter!("timer_claims_refused_total", "Due entries that were no longer pending, or moved, when claimed");
    describe_histogram!("timer_claim_batch_size", "Timers asked for in one claim");
    describe_counter!("timer_loaded_total", "Timers read ahead into memory");
    describe_counter!("timer_sweep_repaired_total", "Overdue timers that only the sweep found");
    describe_counter!("timer_recovered_total", "Claims taken over from a node that did not settle them");
    describe_counter!("timer_purged_total", "Finished timers removed because of their age");
    describe_counter!("timer_task_errors_total", "Background steps that failed and will be tried again, by task");
}
