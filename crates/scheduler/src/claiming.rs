use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{Backoff, Clock, Span, Timestamp};
use store::{Claim, ClaimToken, Claimed, DueEntry, DueStore, OnLocked, StoreResult};
use tokio::time::Instant;

use crate::{
    Config, Linger,
    alarm::{PAUSE_MAX, pause_until},
    hash::mix,
    membership::Membership,
    shared_window::SharedWindow,
    window::Window,
};

/// How many due entries are put in line before the first of them may start.
const PROMOTE_MAX: usize = 10_000;
/// How long a claim with an unknown outcome is repeated so that it fails on locked rows. After that it skips them: a row that stays
/// locked must not hold up the other rows of the batch.
const CERTAINTY_MAX: Duration = Duration::from_secs(10);

/// What one claim got.
#[derive(Debug, Default)]
pub struct Claims {
    /// The claimed timers. Each is in flight until it is [`called`](crate::Scheduler::called).
    pub claimed: Vec<Claimed>,
    /// Whether it is worth claiming again at once.
    pub more_due: bool,
}

/// Turns what is due in the window from pending into executing, for this node.
pub struct Claimer {
    store: Arc<dyn DueStore>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    window: Arc<SharedWindow>,
    batch_max: usize,
    ahead: Span,
    lease: Span,
    /// How many claims were made: each has a token of its own.
    made: AtomicU64,
    /// How many the store has not answered yet.
    under_way: AtomicUsize,
}

impl Claimer {
    pub fn new(
        store: &Arc<dyn DueStore>,
        clock: &Arc<dyn Clock>,
        membership: &Arc<Membership>,
        window: &Arc<SharedWindow>,
        config: &Config,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            membership: Arc::clone(membership),
            window: Arc::clone(window),
            batch_max: config.claim_batch_max,
            ahead: config.claim_ahead,
            lease: config.claim_lease,
            made: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
        }
    }

    /// Completes as soon as there may be something to claim: the next timer is due soon, a permit has become free, or an
    /// earlier timer came in. Never waits longer than a second, because the wall clock may jump.
    pub async fn wait(&self) {
        // Registered before the window is read: a wake-up in between is not lost.
        let woken = self.window.woken();
        // Nothing can be claimed on a lease or by a clock in doubt; the next heartbeat wakes this up.
        let now = self.clock.now();
        let next = if self.membership.may_claim(now) { self.window.with(|window| self.next_claim(window)) } else { None };
        let pause = next.map_or(PAUSE_MAX, |at| pause_until(at, now));
        tokio::select! {
            biased;
            () = woken => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// When the next timer is to be claimed. Half of the time ahead is left to the store; what is due within the other half after it
    /// is claimed along.
    fn next_claim(&self, window: &Window) -> Option<Timestamp> {
        let ahead = Span::from_micros_clamped(self.ahead(window).as_micros() / 2);
        window.next_due().map(|at| at.saturating_sub(ahead))
    }

    /// How long before its time a timer is claimed now: what is due comes before what will be.
    fn ahead(&self, window: &Window) -> Span {
        if window.has_spare_permits() { self.ahead } else { Span::ZERO }
    }

    /// Claims what is due, or will be in a moment, as far as deliveries may start. Beside another claim it waits a little, if there is
    /// only little to take.
    ///
    /// An error leaves everything as it was: the entries are due again.
    pub async fn claim_once(&self) -> StoreResult<Claims> {
        Linger::BESIDE_A_COMMIT.until(self.wait_for_batch()).await;
        let now = self.clock.now();
        if !self.membership.may_claim(now) {
            return Ok(Claims::default());
        }
        let (entries, more_due) = self.window.with(|window| {
            let more_due = window.promote(now.saturating_add(self.ahead(window)), PROMOTE_MAX);
            let entries = window.take(self.batch_max);
            metrics::gauge!("timer_pending_in_memory").set(window.len() as f64);
            metrics::gauge!("timer_in_flight").set(window.in_flight() as f64);
            metrics::gauge!("timer_permits_exhausted").set(f64::from(u8::from(window.is_exhausted())));
            (entries, more_due)
        });
        if entries.is_empty() {
            return Ok(Claims { claimed: Vec::new(), more_due });
        }
        // While the store answers, another claim can be made for what becomes due.
        self.window.wake();
        let _under_way = UnderWay::begin(&self.under_way);
        metrics::histogram!("timer_claim_batch_size").record(entries.len() as f64);
        match self.claim(&entries).await {
            Ok(claimed) => {
                self.let_go_of_unclaimed(&entries, &claimed);
                let sizes = claimed.iter().map(|claimed| ((claimed.entry.at, claimed.entry.id), size(claimed)));
                self.window.with(|window| window.record_sizes(sizes));
                metrics::counter!("timer_claims_total").increment(claimed.len() as u64);
                Ok(Claims { claimed, more_due: true })
            }
            Err(error) => {
                self.window.with(|window| window.put_back(&entries));
                Err(error)
            }
        }
    }

    /// Completes when no other claim is under way, or enough is due for a batch beside it.
    async fn wait_for_batch(&self) {
        let is_over = || {
            let under_way = self.under_way.load(Ordering::Relaxed);
            Linger::BESIDE_A_COMMIT.is_over(under_way, |count| self.has_work_for(count.min(self.batch_max)))
        };
        while !is_over() {
            self.window.woken().await;
        }
    }

    fn has_work_for(&self, count: usize) -> bool {
        let now = self.clock.now();
        self.membership.may_claim(now)
            && self.window.with(|window| {
                window.promote(now.saturating_add(self.ahead(window)), PROMOTE_MAX);
                window.has_work_for(count)
            })
    }

    /// One claim. An unknown outcome is read back by asking again with the same token, until there is an answer: a timer
    /// that may be claimed must neither be forgotten nor claimed anew.
    async fn claim(&self, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let (token, begun) = (self.next_token(), Instant::now());
        let shard_leases = self.membership.shard_leases();
        let mut claim = Claim { token, shard_leases, lease: self.lease, on_locked: OnLocked::Skip };
        let mut unknown = false;
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            match self.store.claim(&claim, entries).await {
                Ok(claimed) => return Ok(claimed),
                Err(error) if error.is_not_done() && !unknown => return Err(error),
                Err(error) => {
                    unknown = true;
                    claim.on_locked = if begun.elapsed() < CERTAINTY_MAX { OnLocked::Fail } else { OnLocked::Skip };
                    tracing::warn!(%error, entries = entries.len(), "the outcome of a claim is unknown; repeating it with the same token");
                    tokio::time::sleep(backoff.failed()).await;
                }
            }
        }
    }

    /// A token that no other claim of any node has: the node's own id is random, and it never counts the same number twice.
    fn next_token(&self) -> ClaimToken {
        let (number, node) = (self.made.fetch_add(1, Ordering::Relaxed), self.membership.node());
        let named = mix((node.0 >> 64) as u64 ^ mix(node.0 as u64 ^ mix(number)));
        ClaimToken(((named >> 1) as i64).max(1))
    }

    fn let_go_of_unclaimed(&self, entries: &[DueEntry], claimed: &[Claimed]) {
        if claimed.len() == entries.len() {
            return;
        }
        let got: HashSet<_> = claimed.iter().map(|claimed| (claimed.entry.id, claimed.entry.at)).collect();
        let refused = entries.iter().filter(|entry| !got.contains(&(entry.id, entry.at)));
        metrics::counter!("timer_claims_refused_total").increment(refused.clone().count() as u64);
        self.window.with(|window| refused.for_each(|entry| window.done(entry)));
    }
}

/// A claim that the store has not answered yet: counted until it is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a claimed timer holds in memory, as far as that can be much.
fn size(claimed: &Claimed) -> usize {
    const OF_ANY: usize = 1024;
    let of_texts = claimed.timer.as_ref().map_or(0, |timer| {
        let definition = &timer.definition;
        let texts = definition.callback.payload().into_iter().chain(definition.metadata.as_ref());
        texts.map(|text| text.as_str().len()).sum()
    });
    OF_ANY + of_texts
}
