//! What this node did, gathered in memory and written to the store from time to time: the source of `/stats/fired` and
//! `/destinations`.
//!
//! ```text
//!   creates, deliveries ──▶ Recorder ── every ten seconds, what has changed ──▶ store ──▶ every node's API
//!                              └──────────── what is newer than that ─────────────────▶ this node's API
//! ```
//!
//! A create or a delivery costs a few increments under locks that no other work is done under. Memory is bounded:
//! there is a maximum number of namespaces in a minute, of minutes that the store did not take, and of receivers.

mod key_uses;
mod minutes;
mod receivers;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{AccessKeyId, Clock, Definition, Namespace, Next, Span, Timestamp};
use scheduler::tasks;
use store::{NodeDigest, NodeId, NodeReceiver, NodeStats, StatsStore, StoreResult};
use tokio_util::sync::CancellationToken;

use self::{
    minutes::Minutes,
    receivers::{Receiver, Receivers},
};

/// How often it is written down.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long what was written is kept.
const KEPT: Span = Span::from_secs(24 * 60 * 60);
/// How often it is looked whether the last use of a key is about to be forgotten.
const CARRY_INTERVAL: Span = Span::from_secs(60 * 60);
/// How many keys are noted in a minute.
const KEYS_MAX: usize = 512;
/// How long the last write may take when the service stops.
const LAST_WRITE_MAX: Duration = Duration::from_secs(2);

/// What one node did, as far as it is in memory.
pub struct Recorder {
    node: NodeId,
    minutes: Mutex<Minutes>,
    receivers: Receivers,
    totals: AtomicTotals,
}

/// What has happened since the start of the process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Calls.
    pub fired: u64,
    /// Timers.
    pub completed: u64,
    pub failed: u64,
    pub expired: u64,
}

#[derive(Debug, Default)]
struct AtomicTotals {
    fired: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    expired: AtomicU64,
}

impl AtomicTotals {
    fn count(&self, is_fired: bool, next: &Next) {
        let ended = match next {
            Next::Completed { .. } => Some(&self.completed),
            Next::Failed { .. } | Next::GivenUp { .. } => Some(&self.failed),
            Next::Expired { .. } => Some(&self.expired),
            Next::Again { .. } | Next::Pending { .. } => None,
        };
        for count in is_fired.then_some(&self.fired).into_iter().chain(ended) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Totals {
            fired: read(&self.fired),
            completed: read(&self.completed),
            failed: read(&self.failed),
            expired: read(&self.expired),
        }
    }
}

/// A call under way. Dropping it ends it.
#[derive(Debug)]
pub struct CallUnderWay(Option<Arc<Receiver>>);

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub struct CallEnd<'a> {
    pub at: Timestamp,
    pub took: Duration,
    /// Why it did not deliver, without anything that could be a secret; `None` if it did.
    pub failure: Option<&'a str>,
    /// When it is repeated, if it is.
    pub retry_at: Option<Timestamp>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::of(NodeId(0))
    }
}

impl Recorder {
    pub fn of(node: NodeId) -> Self {
        Self { node, minutes: Mutex::default(), receivers: Receivers::default(), totals: AtomicTotals::default() }
    }

    /// A call is about to be made.
    pub fn call(&self, definition: &Definition, now: Timestamp) -> CallUnderWay {
        CallUnderWay(self.receivers.find(definition, now).inspect(|receiver| receiver.begin()))
    }

    /// A timer was registered through this node.
    pub fn created(&self, namespace: &Namespace, at: Timestamp) {
        self.minutes().count(at.minute(), Some(namespace), |digest| digest.created += 1);
    }

    /// A key was used. More keys than some hundred in a minute are not told apart.
    pub fn key_used(&self, key: AccessKeyId, at: Timestamp) {
        self.minutes().count(at.minute(), None, |digest| {
            let id = key.to_string();
            if digest.keys_used.len() < KEYS_MAX || digest.keys_used.contains_key(&id) {
                digest.keys_used.insert(id, at.as_micros());
            }
        });
    }

    /// A delivery has ended: how late its call was, if there was one, and what becomes of the timer.
    pub fn ended(&self, namespace: Option<&Namespace>, at: Timestamp, late: Option<Span>, next: &Next, is_retry: bool) {
        self.totals.count(late.is_some(), next);
        self.minutes().count(at.minute(), namespace, |digest| {
            if let Some(late) = late {
                let micros = late.as_micros().unsigned_abs();
                digest.fired += 1;
                digest.lateness.record(micros);
                digest.lateness_max_micros = digest.lateness_max_micros.max(micros);
            }
            digest.completed += u64::from(matches!(next, Next::Completed { .. }));
            digest.failed += u64::from(matches!(next, Next::Failed { .. } | Next::GivenUp { .. }));
            digest.retried += u64::from(is_retry);
        });
    }

    /// What has happened since the start of the process.
    pub fn totals(&self) -> Totals {
        self.totals.get()
    }

    /// What is in memory of the last minutes. It is newer than what the store has of this node for the same minutes.
    pub fn digests(&self) -> Vec<NodeDigest> {
        self.minutes().all(self.node)
    }

    /// What is in memory of receivers.
    pub fn receivers(&self, now: Timestamp) -> Vec<NodeReceiver> {
        self.receivers.all(self.node, now)
    }

    /// Writes down what has changed since the last time. Says whether there was anything.
    pub async fn write_once(&self, store: &dyn StatsStore, now: Timestamp) -> StoreResult<bool> {
        let stats = NodeStats {
            digests: self.minutes().take_unwritten(self.node, now.minute()),
            receivers: self.receivers.take_unwritten(self.node, now),
            forget_before: now.saturating_sub(KEPT),
        };
        if stats.is_empty() {
            return Ok(false);
        }
        let written = store.record_stats(&stats).await;
        if written.is_err() {
            self.minutes().mark_unwritten();
            self.receivers.mark_unwritten();
        }
        written.map(|()| true)
    }

    /// Notes the last uses of keys again that would be forgotten otherwise. Says how many there were.
    pub async fn carry_once(&self, store: &dyn StatsStore, now: Timestamp) -> StoreResult<usize> {
        let written = store.digests(&[], 0, now.minute().saturating_add(1)).await?;
        let fading = key_uses::fading(&written, now);
        if !fading.is_empty() {
            self.minutes().count(now.minute(), None, |digest| digest.note_keys(&fading));
        }
        Ok(fading.len())
    }

    /// Writes it down every ten seconds until `stop`, and a last time once `drained` is over. No error ends it.
    pub async fn run(
        self: Arc<Self>,
        store: Arc<dyn StatsStore>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        drained: impl Future<Output = ()>,
    ) {
        let mut carried_at: Option<Timestamp> = None;
        while !stop.is_cancelled() {
            tasks::pause(&stop, INTERVAL).await;
            if stop.is_cancelled() {
                break;
            }
            let now = clock.now();
            // Before anything is written: a write removes what is old, and after a downtime that is everything.
            if carried_at.is_none_or(|at| now.since(at) >= CARRY_INTERVAL) {
                let carried = self.carry_once(store.as_ref(), now).await;
                carried_at = carried.is_ok().then_some(now);
                tasks::report("stats", &carried);
            }
            tasks::report("stats", &self.write_once(store.as_ref(), now).await);
        }
        drained.await;
        match tokio::time::timeout(LAST_WRITE_MAX, self.write_once(store.as_ref(), clock.now())).await {
            Ok(result) => tasks::report("stats", &result),
            Err(_) => tracing::warn!("the statistics of the last seconds could not be written"),
        }
    }

    fn minutes(&self) -> MutexGuard<'_, Minutes> {
        self.minutes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallUnderWay {
    /// It was made, and ended like this.
    pub fn end(self, end: &CallEnd<'_>) {
        if let Some(receiver) = &self.0 {
            receiver.ended(end);
        }
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        if let Some(receiver) = &self.0 {
            receiver.leave();
        }
    }
}

#[cfg(test)]
mod tests;
