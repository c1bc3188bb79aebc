use std::{sync::Arc, time::Duration};

use domain::{Span, Timestamp};
use store::{Filter, Recorded};
use tokio::{sync::watch, time::Instant};

use super::{Event, EventTypes, PRUNED_AFTER, Stream, event, too_old};
use crate::{CommandError, call};

/// How many events of the ring are looked at in one go.
const RING_EVENTS: usize = 64;
/// How many events of each source a page has.
const PAGE_EVENTS: usize = 100;

/// One stream of events. Everything up to its position has been given out.
pub struct Following {
    stream: Stream,
    filter: Filter,
    types: EventTypes,
    progress: watch::Receiver<()>,
    /// Where the stream began.
    origin: Timestamp,
    position: Timestamp,
    source: Source,
    /// How long the last page of the store took.
    worked: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From the event with this number on; those up to the position are passed over.
    Ring {
        next: u64,
        passed_over: Timestamp,
    },
    Store,
}

/// What a source has.
enum Found {
    /// Perhaps none that is meant, where there is more to look at.
    Events(Vec<Arc<Event>>),
    Nothing,
    /// The stream went over to the other source.
    Elsewhere,
}

impl Following {
    pub(super) fn new(
        stream: Stream,
        filter: Filter,
        types: EventTypes,
        after: Option<Timestamp>,
        progress: watch::Receiver<()>,
    ) -> Self {
        let state = stream.events.state();
        let complete = state.complete.unwrap_or(Timestamp::MIN);
        // A position from before the clock was set back would wait for the clock.
        let position = after.unwrap_or(complete).min(complete);
        let source = match after {
            None => Source::Ring { next: state.ring.end(), passed_over: Timestamp::MIN },
            Some(_) => Source::Store,
        };
        drop(state);
        Self { stream, filter, types, progress, origin: position, position, source, worked: Duration::ZERO }
    }

    /// A client that has seen what was given out so far has seen everything up to here.
    pub const fn position(&self) -> Timestamp {
        self.position
    }

    /// The next events that match; none where others had to be passed over. Waits for some to happen. May be dropped while it waits,
    /// and called again.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, CommandError> {
        loop {
            self.progress.mark_unchanged();
            let found = match self.source {
                Source::Ring { next, passed_over } => self.read_ring(next, passed_over),
                Source::Store => self.read_store().await?,
            };
            match found {
                Found::Events(events) => return Ok(events),
                Found::Elsewhere => {}
                // The sender is in `self.stream`, and cannot be gone.
                Found::Nothing => _ = self.progress.changed().await,
            }
        }
    }

    /// What the ring has next.
    fn read_ring(&mut self, next: u64, passed_over: Timestamp) -> Found {
        let (events, complete) = {
            let state = self.stream.events.state();
            let Some(events) = state.ring.since(next, RING_EVENTS) else {
                self.source = Source::Store;
                return Found::Elsewhere;
            };
            let events: Vec<_> = events.cloned().collect();
            let is_all = next + events.len() as u64 == state.ring.end();
            (events, state.complete.filter(|_| is_all))
        };
        self.source = Source::Ring { next: next + events.len() as u64, passed_over };
        self.position = self.position.max(complete.unwrap_or(self.position));
        if events.is_empty() {
            return Found::Nothing;
        }
        Found::Events(events.into_iter().filter(|event| event.position > passed_over && self.is_meant(event)).collect())
    }

    /// One page from the store. Goes over to the ring where that has the rest.
    async fn read_store(&mut self) -> Result<Found, CommandError> {
        let (complete, joined) = {
            let state = self.stream.events.state();
            let complete = state.complete.unwrap_or(self.position);
            // The clock of the database was set back: see the tail.
            self.position = self.position.min(complete);
            self.origin = self.origin.min(complete);
            (complete, state.ring.join(self.position))
        };
        if let Some(next) = joined {
            self.source = Source::Ring { next, passed_over: self.position };
            return Ok(Found::Elsewhere);
        }
        if self.position >= complete {
            return Ok(Found::Nothing);
        }
        if self.position < complete.saturating_sub(PRUNED_AFTER) {
            return Err(too_old().into());
        }
        let shared = Arc::clone(&self.stream.events.0);
        // Never closed.
        let _permit = shared.catching_up.acquire().await.ok();
        shared.pace.rest_after(self.worked).await;
        let began = Instant::now();
        let page = call::reading(shared.store.events(self.position, complete, PAGE_EVENTS)).await?;
        // Of a former life, what this stream has given out itself, or lies before it.
        let is_past = |event: &Recorded| event.what.former().is_some_and(|at| at <= self.origin);
        let recorded: Vec<Recorded> = page.events.into_iter().filter(|event| !is_past(event)).collect();
        let mut matching = Vec::new();
        for part in recorded.chunks(event::READ_AT_ONCE) {
            let before = |event: &Recorded| event.position.saturating_sub(Span::from_micros(1));
            let events = event::read(shared.store.as_ref(), part, before).await?;
            matching.extend(events.into_iter().filter(|event| self.is_meant(event)).map(Arc::new));
        }
        self.worked = began.elapsed();
        self.position = page.until;
        Ok(Found::Events(matching))
    }

    fn is_meant(&self, event: &Event) -> bool {
        self.types.contains(event.kind) && self.filter.fits(&event.timer)
    }
}
