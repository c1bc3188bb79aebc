//! Following what happens to timers.
//!
//! ```text
//!   store ──every 250 ms──▶ tail ──▶ ring ──▶ Following, one for each stream
//!     │                     (while there   │      filter, types
//!     │                      are readers)  │
//!     └──────── pages ─────────────────────┴──▶ one that is behind the ring
//! ```
//!
//! Nothing is fed by what is followed: the tail reads the record that the store keeps anyway, so that a stream shows what happens
//! on every node, and goes on after a restart of any of them. A reader that is slow, or resumes from long ago, reads the store by
//! itself until it has caught up with the ring; so no queue is longer than the ring. While many calls are late, both read little:
//! events are then shown later, and none is missed.

mod event;
mod following;
mod pace;
mod ring;
mod tail;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{AccessKeyId, Invalid, Span, Timestamp};
use store::{EventStore, Filter, JOURNAL_KEPT, StoreError, StoreResult};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

pub use self::{
    event::{Event, EventType, EventTypes},
    following::Following,
};
use self::{pace::Pace, ring::Ring, tail::Tail};
use crate::{CallCount, CommandError, Commands, call};

/// How many streams one key may have open, and all keys together.
const STREAMS_OF_A_KEY_MAX: usize = 8;
const STREAMS_MAX: usize = 256;
/// How many readers that are behind read the store at the same time.
const CATCHING_UP_MAX: usize = 2;
/// How long a new stream waits for the tail to begin.
const BEGINNING_TIME_MAX: Duration = Duration::from_secs(10);

/// A reader may begin as far back as the journal is promised to be kept, and has an hour from then on to catch up.
const PRUNED_AFTER: Span = Span::from_micros_clamped(JOURNAL_KEPT.as_micros() + 3_600_000_000);
const PRUNE_PAUSE: Duration = Duration::from_secs(60);
/// Little, as in a purge: a create or a timer that becomes due waits for it. The pause after it is as long as it took, at least.
const PRUNED_AT_ONCE: usize = 250;
const PRUNE_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The events of this process, read from the store once for all that follow them. Clones share them.
#[derive(Clone)]
pub struct Events(Arc<Shared>);

pub(crate) struct Shared {
    store: Arc<dyn EventStore>,
    state: Mutex<State>,
    /// Says that the state is another one.
    progress: watch::Sender<()>,
    catching_up: Semaphore,
    pace: Pace,
}

struct State {
    ring: Ring,
    /// Every event with a position up to here has been in the ring, or lies before it. `None` while nothing is read.
    complete: Option<Timestamp>,
    /// How many streams each key has, at least one. `None` is the administrator's.
    streams: HashMap<Option<AccessKeyId>, usize>,
    is_tailed: bool,
}

/// The permit of one stream.
struct Stream {
    events: Events,
    key: Option<AccessKeyId>,
}

impl Events {
    pub fn new(store: Arc<dyn EventStore>) -> Self {
        Self::paced(store, Pace::default())
    }

    /// The same, read slowly while many calls are late.
    pub fn yielding_to(store: Arc<dyn EventStore>, late_calls: CallCount) -> Self {
        Self::paced(store, Pace::yielding_to(late_calls))
    }

    fn paced(store: Arc<dyn EventStore>, pace: Pace) -> Self {
        let state = State { ring: Ring::default(), complete: None, streams: HashMap::new(), is_tailed: false };
        Self(Arc::new(Shared {
            store,
            state: Mutex::new(state),
            progress: watch::Sender::new(()),
            catching_up: Semaphore::new(CATCHING_UP_MAX),
            pace,
        }))
    }

    /// Removes entries of the journal that are older than they are kept. Returns whether there is more.
    pub async fn prune_once(&self) -> StoreResult<bool> {
        let before = call::reading(self.0.store.watermark()).await?.at.saturating_sub(PRUNED_AFTER);
        let forgotten = call::writing(self.0.store.forget_events(before, PRUNED_AT_ONCE)).await?;
        Ok(forgotten >= PRUNED_AT_ONCE)
    }

    /// Keeps the journal short, until it is dropped. One node is enough for it: the other nodes only ask whether it is for them.
    pub async fn prune(self, is_pruner: impl Fn() -> bool + Send) {
        loop {
            let began = Instant::now();
            let pruned = if is_pruner() { self.prune_once().await } else { Ok(false) };
            match pruned {
                Ok(true) => tokio::time::sleep(began.elapsed().max(PRUNE_PAUSE_MIN)).await,
                Ok(false) => tokio::time::sleep(PRUNE_PAUSE).await,
                Err(error) => {
                    tracing::warn!(%error, "old events could not be removed yet");
                    tokio::time::sleep(PRUNE_PAUSE).await;
                }
            }
        }
    }

    /// Opens a stream of the events after a position, or of those from now on.
    async fn follow(
        &self,
        key: Option<AccessKeyId>,
        filter: Filter,
        types: EventTypes,
        after: Option<Timestamp>,
    ) -> Result<Following, CommandError> {
        let mut progress = self.0.progress.subscribe();
        let stream = self.open(key)?;
        let complete = async {
            loop {
                let complete = self.state().complete;
                if let Some(complete) = complete {
                    return complete;
                }
                // The sender is in `self`, and cannot be gone.
                let _ = progress.changed().await;
            }
        };
        let complete = tokio::time::timeout(BEGINNING_TIME_MAX, complete)
            .await
            .map_err(|_| StoreError::Unavailable(format!("the events could not be read within {BEGINNING_TIME_MAX:?}").into()))?;
        if after.is_some_and(|after| after < complete.saturating_sub(JOURNAL_KEPT)) {
            return Err(too_old().into());
        }
        Ok(Following::new(stream, filter, types, after, progress))
    }

    fn open(&self, key: Option<AccessKeyId>) -> Result<Stream, CommandError> {
        let mut state = self.state();
        if state.streams.values().sum::<usize>() >= STREAMS_MAX {
            return Err(CommandError::TooManyStreams("256 event streams are open, which is as many as there may be"));
        }
        let of_key = state.streams.entry(key).or_default();
        if *of_key >= STREAMS_OF_A_KEY_MAX {
            return Err(CommandError::TooManyStreams("this key has 8 event streams open, which is as many as a key may have"));
        }
        *of_key += 1;
        if !std::mem::replace(&mut state.is_tailed, true) {
            tokio::spawn(Tail::run(self.clone()));
        }
        drop(state);
        metrics::gauge!("timer_event_streams").increment(1.0);
        Ok(Stream { events: self.clone(), key })
    }

    /// Forgets everything if no stream is left; then the tail ends.
    fn is_abandoned(&self) -> bool {
        let mut state = self.state();
        if !state.streams.is_empty() {
            return false;
        }
        (state.ring, state.complete, state.is_tailed) = (Ring::default(), None, false);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_old() -> Invalid {
    Invalid::new("after", "must not be older than 24 hours: begin anew without it")
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.events.state();
        if let Some(streams) = state.streams.get_mut(&self.key) {
            *streams -= 1;
            if *streams == 0 {
                state.streams.remove(&self.key);
            }
        }
        drop(state);
        metrics::gauge!("timer_event_streams").decrement(1.0);
    }
}

impl Commands {
    /// The events of the timers that match, from a position on or from now on, as far as the caller may know of them.
    pub async fn follow(&self, filter: &Filter, types: EventTypes, after: Option<Timestamp>) -> Result<Following, CommandError> {
        let filter = self.narrowed(filter)?;
        self.stores.events.follow(self.caller.key_id(), filter, types, after).await
    }
}

#[cfg(test)]
mod tests;
