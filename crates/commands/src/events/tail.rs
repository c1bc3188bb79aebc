use std::{
    collections::{HashMap, VecDeque},
    panic::AssertUnwindSafe,
    time::Duration,
};

use domain::{Backoff, Span, TimerId, Timestamp};
use futures_util::FutureExt;
use store::{Happened, PROMPT_WITHIN, Recorded, StoreError, StoreResult, Watermark};
use tokio::time::Instant;

use super::{Events, event};
use crate::call;

const POLL_PAUSE: Duration = Duration::from_millis(250);
/// The rest of the tail, as a multiple of the time for which it has read: it never takes more than a fifth of one session.
const REST_FACTOR: u32 = 4;
const FAILURE_PAUSES: Backoff = Backoff::new(POLL_PAUSE, Duration::from_secs(5));
const PAGE_EVENTS: usize = 2_000;
/// How many are read between two rests.
const PAGE_EVENTS_BESIDE_LATE_CALLS: usize = 500;
/// A slack for clocks that count in milliseconds. By more than this the clock of the database goes back only when it is set.
const SLACK: Span = Span::from_micros_clamped(50_000);
/// How far behind a watermark an event may still appear: see [`PROMPT_WITHIN`].
const BEHIND: Span = Span::from_micros_clamped(PROMPT_WITHIN.as_micros() + SLACK.as_micros());
/// How many events are remembered while an old write keeps the watermark back.
const SEEN_MAX: usize = 200_000;
const WATERMARKS_MAX: usize = 128;

/// Reads the events of all timers as they appear, each once.
pub(super) struct Tail {
    events: Events,
    /// Every event up to here has been read, and no other will appear.
    complete: Timestamp,
    /// No other event will appear up to here, read or not.
    settled: Timestamp,
    /// Those that no later one is past yet, in their order.
    watermarks: VecDeque<Watermark>,
    /// What has been read of what lies behind `complete`, with its position.
    seen: HashMap<(TimerId, Happened), Timestamp>,
    /// The moment of the last watermark, and when it was read.
    latest: (Timestamp, Instant),
}

impl Tail {
    /// Reads until no stream is left.
    pub(super) async fn run(events: Events) {
        let mut failures = FAILURE_PAUSES;
        let mut tail = None;
        while !events.is_abandoned() {
            let started = Instant::now();
            // A panic must not leave streams without their tail.
            let stepped = AssertUnwindSafe(Self::step(&events, &mut tail)).catch_unwind().await.unwrap_or_else(|_| {
                tail = None;
                Err(StoreError::Corrupt("internal error while reading events; see the log".into()))
            });
            let pause = match stepped {
                Ok(rested) => {
                    if failures.went_well() {
                        tracing::info!("events can be read again");
                    }
                    (started.elapsed().saturating_sub(rested) * REST_FACTOR).max(POLL_PAUSE)
                }
                Err(error) => {
                    if !failures.is_failing() {
                        tracing::warn!(%error, "events cannot be read at the moment");
                    }
                    failures.failed()
                }
            };
            tokio::time::sleep(pause).await;
            if tail.is_some() {
                events.0.pace.postpone().await;
            }
        }
    }

    /// Reads what there is. Returns how long it rested meanwhile.
    async fn step(events: &Events, tail: &mut Option<Self>) -> StoreResult<Duration> {
        match tail {
            Some(tail) => tail.read().await,
            none => none.insert(Self::begin(events.clone()).await?).read().await,
        }
    }

    /// Begins so far back that everything appears that is recorded from now on.
    async fn begin(events: Events) -> StoreResult<Self> {
        let now = call::reading(events.0.store.watermark()).await?.at;
        Ok(Self::starting_at(events, now, now.saturating_sub(BEHIND)))
    }

    fn starting_at(events: Events, now: Timestamp, complete: Timestamp) -> Self {
        events.state().ring.restart(complete);
        Self {
            events,
            complete,
            settled: complete,
            watermarks: VecDeque::new(),
            seen: HashMap::new(),
            latest: (now, Instant::now()),
        }
    }

    /// Begins anew where the clock of the database was set back: what is recorded from then on lies at positions that count as read.
    /// The streams repeat what lies after the new position.
    fn follow_the_clock(&mut self, now: Timestamp) {
        let (latest, read_at) = self.latest;
        self.latest = (now, Instant::now());
        if now >= latest.saturating_sub(SLACK) {
            return;
        }
        tracing::warn!(by = %latest.since(now), "the clock of the database was set back: events are repeated");
        // It may have been set right after the last watermark.
        let since = Span::from_micros_clamped(i64::try_from(read_at.elapsed().as_micros()).unwrap_or(i64::MAX));
        *self = Self::starting_at(self.events.clone(), now, now.saturating_sub(since).saturating_sub(BEHIND));
    }

    /// Reads what has appeared since, and tells the streams; beside calls that are late only some of it, and the rest next time. Returns
    /// how long it gave way to calls.
    async fn read(&mut self) -> StoreResult<Duration> {
        // Before the events: what had ended by then is among them.
        let watermark = call::reading(self.events.0.store.watermark()).await?;
        self.follow_the_clock(watermark.at);
        let until = watermark.at.saturating_add(BEHIND);
        // The first stream waits for the first read.
        let is_first = self.events.state().complete.is_none();
        let (mut after, mut rested) = (self.complete, Duration::ZERO);
        while after < until {
            let began = Instant::now();
            let are_calls_late = !is_first && self.events.0.pace.are_calls_late();
            let limit = if are_calls_late { PAGE_EVENTS_BESIDE_LATE_CALLS } else { PAGE_EVENTS };
            let page = call::reading(self.events.0.store.events(after, until, limit)).await?;
            let new: Vec<Recorded> = page.events.into_iter().filter(|event| self.is_new(event)).collect();
            for part in new.chunks(event::READ_AT_ONCE) {
                self.publish(part).await?;
            }
            after = page.until;
            if are_calls_late {
                rested += self.events.0.pace.rest_after(began.elapsed()).await;
                // By now there is a later watermark, so that the position moves on.
                if !new.is_empty() {
                    break;
                }
            }
        }
        self.advance(watermark, after);
        self.events.state().complete = Some(self.complete);
        self.events.0.progress.send_replace(());
        Ok(rested)
    }

    fn is_new(&self, event: &Recorded) -> bool {
        let is_past = event.what.former().is_some_and(|at| at <= self.complete);
        !is_past && !self.seen.contains_key(&identity(event))
    }

    async fn publish(&mut self, part: &[Recorded]) -> StoreResult<()> {
        let complete = self.complete;
        let events = event::read(self.events.0.store.as_ref(), part, |_| complete).await?;
        let mut state = self.events.state();
        events.into_iter().for_each(|event| state.ring.push(event));
        drop(state);
        self.events.0.progress.send_replace(());
        self.seen.extend(part.iter().map(|event| (identity(event), event.position)));
        Ok(())
    }

    /// Everything up to `read` has been read that could be read at the watermark.
    fn advance(&mut self, watermark: Watermark, read: Timestamp) {
        if let Some(past) = self.watermarks.iter().rposition(|earlier| watermark.is_past(earlier)) {
            self.settled = self.settled.max(self.watermarks[past].at.saturating_sub(BEHIND));
            self.watermarks.drain(..=past);
        }
        self.complete = self.complete.max(self.settled.min(read));
        self.watermarks.push_back(watermark);
        if self.watermarks.len() > WATERMARKS_MAX {
            // An old write keeps them waiting: half as many do as well, only the last must stay.
            let mut number = 0;
            self.watermarks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.forget();
    }

    fn forget(&mut self) {
        if self.seen.len() > SEEN_MAX {
            let mut positions: Vec<Timestamp> = self.seen.values().copied().collect();
            positions.sort_unstable();
            self.complete = self.complete.max(positions[positions.len() - SEEN_MAX / 2]);
            tracing::warn!("a write to the database has been open for long: an event that it records may be missed");
        }
        let complete = self.complete;
        self.seen.retain(|_, position| *position > complete);
    }
}

/// The same whichever source it comes from.
const fn identity(event: &Recorded) -> (TimerId, Happened) {
    let what = match event.what {
        Happened::Ended { at, status } => Happened::Finished { at, status },
        Happened::Began { at } => Happened::Created { at },
        what => what,
    };
    (event.id, what)
}
