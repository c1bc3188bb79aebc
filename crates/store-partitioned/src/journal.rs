//! What happened to timers: their own rows by time, and a journal for what those do not show.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use domain::{Attempt, Shard, Span, Timer, TimerId, Timestamp};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use store::{EventPage, EventStore, Happened, Read, StoreResult, Unreadable, Watermark};

use crate::{
    Change, Columns, Condition, Consistency, Outcome, PartitionedStore, Positions, Range, Row, Write,
    columns::Head,
    json::{from_json, to_json},
    layout,
    timer_row::TimerRow,
};

/// The maximum time of a write, from the moment at which it takes its time for the journal to the moment at which it can be read.
/// No database of this kind tells which writes are under way, so that a reader waits for this time.
const WRITE_TIME_MAX: Span = Span::from_secs(5);
/// The time by which the clock of another node may be behind.
const LATE_EVENTS: Span = Span::from_secs(60);
/// How many events one row of the journal holds, at most: a row costs a database about as much as a timer does, however small it is.
const EVENTS_PER_ROW: usize = 100;

#[derive(Serialize, Deserialize)]
struct StoredEvent {
    id: u128,
    kind: i16,
    moment: Option<i64>,
    seq: i64,
    status: Option<String>,
}

/// A source of events: one index or the journal of a shard.
#[derive(Clone, Copy)]
enum Source {
    Created,
    Ended,
    Journal,
}

impl PartitionedStore {
    /// Records what happened to timers of a shard. Their rows are written already: an event that is lost is missed by streams, and
    /// changes nothing else.
    pub(crate) async fn record(&self, shard: Shard, events: Vec<(TimerId, Happened)>) {
        if events.is_empty() {
            return;
        }
        let now = layout::ordered(self.now().as_micros());
        let row = |events: &[(TimerId, Happened)]| {
            let stored: Vec<StoredEvent> = events.iter().map(StoredEvent::of).collect();
            let key = [&now[..], &self.version().0.to_be_bytes()].concat();
            self.put(key, Condition::Any, to_json(&stored))
        };
        let rows = events.chunks(EVENTS_PER_ROW);
        let lost = match self.database.write(&layout::journal(shard), rows.clone().map(row).collect()).await {
            Ok(outcomes) => {
                let is_lost = |outcome: &Outcome| !matches!(outcome, Outcome::Applied);
                rows.zip(outcomes).filter(|(_, outcome)| is_lost(outcome)).map(|(events, _)| events.len()).sum()
            }
            Err(error) => {
                tracing::warn!(%error, "what happened to timers could not be recorded");
                events.len()
            }
        };
        if lost > 0 {
            tracing::warn!(events = lost, "events of timers are lost to streams");
        }
    }

    /// The first events of a source, at most `limit`.
    async fn source(
        &self,
        shard: Shard,
        source: Source,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Read>> {
        let (from, to) = (after.as_micros().saturating_add(1), until.as_micros().saturating_add(1));
        let moments = || (layout::ordered(from).to_vec(), layout::ordered(to).to_vec());
        let (partition, index, (from, to)) = match source {
            Source::Created => (layout::timers(shard), Some(layout::CREATED), moments()),
            Source::Ended => (layout::timers(shard), Some(layout::STANDING), layout::ended_range(from, to)),
            Source::Journal => (layout::journal(shard), None, moments()),
        };
        let columns = if matches!(source, Source::Created) { Columns::NONE } else { Columns::HEAD };
        let mut range = Range { index, from, to: Some(to), is_descending: false, limit: source.full_rows(limit) };
        let mut events: Vec<Read> = Vec::new();
        loop {
            let rows = self.database.range(&partition, &range, columns, Consistency::Committed).await?;
            events.extend(rows.iter().filter_map(|row| source.read(row)).flatten());
            let Some(last) = rows.last().filter(|_| rows.len() == range.limit && events.len() < limit) else { break };
            range.from = crate::after(if index.is_some() { last.position.clone() } else { last.key.clone() });
            // The rows were not full: a row for each missing event is enough, since each row holds one at least.
            range.limit = limit - events.len();
        }
        // What is cut off has the position of the last event or a later one, and a page ends before that.
        events.truncate(limit);
        Ok(events)
    }
}

fn unreadable() -> Unreadable {
    Unreadable("the id of an event cannot be read".to_owned())
}

impl StoredEvent {
    fn of((id, what): &(TimerId, Happened)) -> Self {
        let (moment, seq, status) = what.columns();
        Self { id: id.as_uuid().as_u128(), kind: what.kind(), moment, seq, status: status.map(str::to_owned) }
    }

    fn read(&self) -> Result<(TimerId, Happened), Unreadable> {
        let id = layout::timer_id(&self.id.to_be_bytes()).ok_or_else(unreadable)?;
        Ok((id, Happened::from_columns(self.kind, self.moment, self.seq, self.status.as_deref())?))
    }
}

impl Source {
    /// How many rows hold this number of events, where they are full.
    const fn full_rows(self, events: usize) -> usize {
        match self {
            Self::Created | Self::Ended => events,
            Self::Journal => events.div_ceil(EVENTS_PER_ROW),
        }
    }

    /// The events of one row, which all have the same position.
    fn read(self, row: &Row) -> Option<Vec<Read>> {
        Some(match self {
            Self::Created => {
                let at = layout::moment(&row.position, 0)?;
                let id = layout::timer_id(&row.key).ok_or_else(unreadable);
                vec![Read::of(at, id.map(|id| (id, Happened::Created { at })))]
            }
            Self::Ended => {
                let at = layout::moment(&row.position, 1)?;
                let id = layout::timer_id(&row.key).ok_or_else(unreadable);
                let status = from_json::<Head>(&row.head).map(|head| head.status);
                // One that lives again since has its end in the journal. It counts, so that the page ends where it should.
                if status.as_ref().is_ok_and(|status| !status.is_finished()) {
                    return Some(vec![Read::Damaged { position: at }]);
                }
                vec![Read::of(at, id.and_then(|id| Ok((id, Happened::Finished { at, status: status? }))))]
            }
            Self::Journal => {
                let at = layout::moment(&row.key, 0)?;
                match from_json::<Vec<StoredEvent>>(&row.head) {
                    Ok(events) => events.iter().map(|event| Read::of(at, event.read())).collect(),
                    Err(unreadable) => vec![Read::of(at, Err(unreadable))],
                }
            }
        })
    }
}

#[async_trait]
impl EventStore for PartitionedStore {
    async fn watermark(&self) -> StoreResult<Watermark> {
        let at = self.now();
        let number = |at: Timestamp| at.as_micros().max(0).unsigned_abs();
        Ok(Watermark { at, open: number(at.saturating_sub(WRITE_TIME_MAX)), next: number(at) })
    }

    async fn events(&self, after: Timestamp, until: Timestamp, limit: usize) -> StoreResult<EventPage> {
        let mut limit = limit.max(1);
        loop {
            let mut work: Vec<BoxFuture<'_, StoreResult<Vec<Read>>>> = Vec::new();
            for shard in self.all_shards() {
                for source in [Source::Created, Source::Ended, Source::Journal] {
                    work.push(Box::pin(self.source(shard, source, after, until, limit)));
                }
            }
            let sources: StoreResult<Vec<Vec<Read>>> = Self::on_all(work).await.into_iter().collect();
            if let Some(page) = EventPage::merge(sources?, until, limit) {
                return Ok(page);
            }
            limit = limit.saturating_mul(4);
        }
    }

    async fn timers(&self, ids: &[TimerId]) -> StoreResult<Vec<Timer>> {
        let rows = self.rows(ids, Columns::HEAD_AND_BODY).await?;
        Ok(rows.into_iter().flatten().filter_map(|row| row.timer().ok()).collect())
    }

    async fn attempts_at(&self, of: &[(TimerId, i64)]) -> StoreResult<Vec<Option<Attempt>>> {
        let ids: Vec<TimerId> = of.iter().map(|(id, _)| *id).collect();
        let rows: Vec<Option<TimerRow>> = self.rows(&ids, Columns { head: true, body: false, log: true }).await?;
        Ok(of.iter().zip(rows).map(|((_, seq), row)| row?.attempt_at(*seq)).collect())
    }

    async fn forget_events(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let mut forgotten = 0;
        // Databases that keep marks of what was removed would read them all again.
        let done = self.events_forgotten_before.load(Ordering::Relaxed);
        let from = layout::ordered(done.saturating_sub(LATE_EVENTS.as_micros())).to_vec();
        for shard in self.all_shards() {
            let partition = layout::journal(shard);
            let to = layout::ordered(before.as_micros()).to_vec();
            let range = Range { from: from.clone(), to: Some(to), ..Range::all(limit - forgotten) };
            let rows = self.database.range(&partition, &range, Columns::NONE, Consistency::Committed).await?;
            let removal = |row: Row| Write {
                key: row.key,
                condition: Condition::Any,
                change: Change::Delete,
                before: Positions::default(),
            };
            let writes: Vec<Write> = rows.into_iter().map(removal).collect();
            forgotten += writes.len();
            if !writes.is_empty() {
                self.database.write(&partition, writes).await?;
            }
            if forgotten >= limit {
                return Ok(forgotten);
            }
        }
        self.events_forgotten_before.fetch_max(before.min(self.now()).as_micros(), Ordering::Relaxed);
        Ok(forgotten)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::ManualClock;

    use super::*;
    use crate::Memory;

    async fn open(memory: &Memory) -> (PartitionedStore, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
        let store = PartitionedStore::open(Arc::new(memory.clone()), clock.clone(), 1).await.unwrap();
        (store, clock)
    }

    fn attempted(store: &PartitionedStore, seq: i64) -> (TimerId, Happened) {
        (TimerId::random_in(store.now(), Shard(0), 1), Happened::Attempted { seq })
    }

    /// All events, page by page, as a stream reads them.
    async fn walk(store: &PartitionedStore, limit: usize) -> Vec<(TimerId, Happened)> {
        let (mut after, until, mut read) = (Timestamp::from_micros(0), store.now(), Vec::new());
        while after < until {
            let page = store.events(after, until, limit).await.unwrap();
            assert!(page.until > after, "a page moves on");
            read.extend(page.events.into_iter().map(|event| (event.id, event.what)));
            after = page.until;
        }
        read
    }

    #[tokio::test]
    async fn the_events_of_a_call_share_rows_and_come_back_one_by_one() {
        let memory = Memory::default();
        let (store, _clock) = open(&memory).await;
        let before = memory.rows();
        let numbers = 0..i64::try_from(2 * EVENTS_PER_ROW + 1).unwrap();
        let mut recorded: Vec<(TimerId, Happened)> = numbers.map(|seq| attempted(&store, seq)).collect();
        store.record(Shard(0), recorded.clone()).await;
        assert_eq!(memory.rows() - before, 3);

        // All of them have one position, so that no shorter page would move on.
        let page = store.events(Timestamp::from_micros(0), Timestamp::MAX, 2).await.unwrap();
        let mut read: Vec<(TimerId, Happened)> = page.events.into_iter().map(|event| (event.id, event.what)).collect();
        recorded.sort_by_key(|(id, _)| *id);
        read.sort_by_key(|(id, _)| *id);
        assert_eq!(read, recorded);
    }

    #[tokio::test]
    async fn pages_of_any_length_give_every_event_once_and_in_order() {
        let (store, clock) = open(&Memory::default()).await;
        let mut recorded = Vec::new();
        for (count, moment) in [2, 4, 1, 150, 3, 1, 1, 1, 250, 1].into_iter().zip(0..) {
            clock.advance(Span::from_micros(1));
            let mut events: Vec<(TimerId, Happened)> = (0..count).map(|_| attempted(&store, moment)).collect();
            events.sort_by_key(|(id, _)| *id);
            store.record(Shard(0), events.clone()).await;
            recorded.extend(events);
        }
        for limit in [1, 2, 3, 7, EVENTS_PER_ROW, EVENTS_PER_ROW + 1, 300, 1_000] {
            assert_eq!(walk(&store, limit).await, recorded, "{limit} at a time");
        }
    }

    #[tokio::test]
    async fn an_event_that_cannot_be_read_costs_no_other_one_of_its_row() {
        let (store, _clock) = open(&Memory::default()).await;
        let (first, last) = (attempted(&store, 1), attempted(&store, 2));
        let damaged = StoredEvent { kind: 99, ..StoredEvent::of(&first) };
        let stored = vec![StoredEvent::of(&first), damaged, StoredEvent::of(&last)];
        let key = [&layout::ordered(store.now().as_micros())[..], &store.version().0.to_be_bytes()].concat();
        let row = store.put(key, Condition::Any, to_json(&stored));
        assert!(store.write_one(&layout::journal(Shard(0)), row).await.unwrap());
        let mut expected = vec![first, last];
        expected.sort_by_key(|(id, _)| *id);
        for limit in [1, 2, 10] {
            assert_eq!(walk(&store, limit).await, expected);
        }
    }
}
