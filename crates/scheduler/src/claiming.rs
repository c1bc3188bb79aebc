use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use store::{Claim, ClaimToken, Claimed, DueEntry, OnLocked, StoreResult};

use tokio::time::Instant;

use crate::{Scheduler, hash::mix};

/// How many due entries are put in line before the first of them may start.
const PROMOTE_MAX: usize = 10_000;
/// So many are worth a claim beside another one. Fewer wait for that one to end, but no longer than this.
const WORTHWHILE: usize = 64;
const LINGER_MAX: Duration = Duration::from_millis(5);
/// So long a claim in doubt is asked about until it is certain. After that a row that somebody holds keeps the others no longer.
const CERTAINTY_MAX: Duration = Duration::from_secs(10);

impl Scheduler {
    /// Claims what is due, as far as deliveries may start now. Returns the claimed timers (each busy until it is
    /// [`called`](Scheduler::called)), and whether it is worth calling again at once. Beside another claim it waits a moment, if there
    /// is only little to take.
    ///
    /// An error leaves everything as it was: the entries are due again.
    pub async fn claim_once(&self) -> StoreResult<(Vec<Claimed>, bool)> {
        // Whether it is or not: nothing waits longer.
        let _ = tokio::time::timeout(LINGER_MAX, self.is_worthwhile()).await;
        let now = self.now();
        if !self.may_claim(now) {
            return Ok((Vec::new(), false));
        }
        let (entries, more_due) = {
            let mut window = self.window();
            let more_due = window.promote(now, PROMOTE_MAX);
            let entries = window.take(self.config.claim_batch_max);
            metrics::gauge!("timer_pending_in_memory").set(window.len() as f64);
            metrics::gauge!("timer_in_flight").set(window.in_flight() as f64);
            metrics::gauge!("timer_permits_exhausted").set(f64::from(u8::from(window.is_exhausted())));
            (entries, more_due)
        };
        if entries.is_empty() {
            return Ok((Vec::new(), more_due));
        }
        // While the store answers, another claim can be made for what becomes due.
        self.wake();
        let _under_way = UnderWay::begin(&self.claims_under_way);
        metrics::histogram!("timer_claim_batch_size").record(entries.len() as f64);
        match self.claim(&entries).await {
            Ok(claimed) => {
                self.let_go_of_unclaimed(&entries, &claimed);
                self.window().record_sizes(claimed.iter().map(|claimed| ((claimed.entry.at, claimed.entry.id), size(claimed))));
                metrics::counter!("timer_claims_total").increment(claimed.len() as u64);
                Ok((claimed, true))
            }
            Err(error) => {
                self.window().put_back(&entries);
                Err(error)
            }
        }
    }

    /// Until a claim is worth its commit: there is no other, or much to take.
    async fn is_worthwhile(&self) {
        while self.claims_under_way.load(Ordering::Relaxed) > 0 && !self.has_work_for(WORTHWHILE.min(self.config.claim_batch_max))
        {
            self.wake.notified().await;
        }
    }

    fn has_work_for(&self, count: usize) -> bool {
        let now = self.now();
        self.may_claim(now) && {
            let mut window = self.window();
            window.promote(now, PROMOTE_MAX);
            window.has_work_for(count)
        }
    }

    /// One claim. An unknown outcome is read back by asking again with the same token, until there is an answer: a timer
    /// that may be claimed must neither be forgotten nor claimed anew.
    async fn claim(&self, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let (token, begun) = (self.next_token(), Instant::now());
        let mut claim =
            Claim { token, shard_leases: self.shard_leases(), lease: self.config.claim_lease, on_locked: OnLocked::Skip };
        let mut unknown = false;
        let mut pause = Duration::from_millis(10);
        loop {
            match self.store.claim(&claim, entries).await {
                Ok(claimed) => return Ok(claimed),
                Err(error) if error.is_not_done() && !unknown => return Err(error),
                Err(error) => {
                    unknown = true;
                    claim.on_locked = if begun.elapsed() < CERTAINTY_MAX { OnLocked::Fail } else { OnLocked::Skip };
                    tracing::warn!(%error, entries = entries.len(), "a claim is in doubt; asking again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    /// A name that no other claim of any node has: the node's own id is random, and it never counts the same number twice.
    fn next_token(&self) -> ClaimToken {
        let number = self.claims.fetch_add(1, Ordering::Relaxed);
        let named = mix((self.node.0 >> 64) as u64 ^ mix(self.node.0 as u64 ^ mix(number)));
        ClaimToken(((named >> 1) as i64).max(1))
    }

    fn let_go_of_unclaimed(&self, entries: &[DueEntry], claimed: &[Claimed]) {
        if claimed.len() == entries.len() {
            return;
        }
        let got: HashSet<_> = claimed.iter().map(|claimed| (claimed.entry.id, claimed.entry.at)).collect();
        let mut window = self.window();
        let refused = entries.iter().filter(|entry| !got.contains(&(entry.id, entry.at)));
        metrics::counter!("timer_claims_refused_total").increment(refused.clone().count() as u64);
        refused.for_each(|entry| window.done(entry));
    }
}

/// Counts as long as it lives.
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
