//! Lists and counts: the ordered indexes of all shards, merged into one order.
//!
//! ```text
//!   timers-0   by created_at ─┐
//!   timers-1   by created_at ─┼──▶ merge by (time, id) ──▶ filter ──▶ page
//!   timers-n   by created_at ─┘
//! ```
//!
//! Every list is in one order across all namespaces and shards, and shows every write that was answered before. Its price is a read of
//! every shard, and that a filter which no index serves looks at everything, within its budget.

use std::{collections::VecDeque, time::Duration};

use domain::{Callback, CorrelationId, Group, Invalid, Key, Namespace, Shard, TimerId, Timestamp};
use futures_util::future::BoxFuture;
use store::{
    COUNTED_MAX, Candidate, Count, Cursor, Filter, ListQuery, Order, Page, Period, Sort, StoreError, StoreResult, Summary,
};

use crate::{Columns, Consistency, Index, PartitionedStore, Range, after, layout, timer_row::TimerRow};

/// How many timers a search looks at, whatever its budget.
const LOOKED_AT_MIN: u64 = 500;
/// How many timers are counted, whatever the budget.
const COUNTED_MIN: u64 = 10_000;
/// How many rows of a shard are read at once: at first, and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// The index of one shard, from where it was read so far.
struct Stream {
    shard: Shard,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    buffer: VecDeque<(Cursor, StoreResult<TimerRow>)>,
    is_ended: bool,
}

/// All timers in one order, from all shards.
struct Merged<'a> {
    store: &'a PartitionedStore,
    index: Index,
    sort: Sort,
    is_descending: bool,
    columns: Columns,
    chunk: usize,
    streams: Vec<Stream>,
}

impl<'a> Merged<'a> {
    fn new(store: &'a PartitionedStore, query: &ListQuery) -> Self {
        let (index, period) = match query.sort {
            Sort::CreatedAt => (layout::CREATED, query.filter.created),
            Sort::ExecuteAt => (layout::EXECUTE, query.filter.due),
        };
        let is_descending = query.order == Order::Descending;
        let (from, to) = bounds(period, query.after, is_descending);
        let stream = |shard| Stream { shard, from: from.clone(), to: to.clone(), buffer: VecDeque::new(), is_ended: false };
        let is_by_body = query.filter.reads_metadata() || query.filter.destination.is_some();
        let wanted = usize::try_from(u64::from(query.limit).saturating_add(query.offset)).unwrap_or(usize::MAX);
        Self {
            store,
            index,
            sort: query.sort,
            is_descending,
            columns: if is_by_body { Columns::HEAD_AND_BODY } else { Columns::HEAD },
            chunk: (wanted / usize::from(store::Sharded::shards(store)) * 2).clamp(CHUNK_MIN, CHUNK_MAX),
            streams: store.all_shards().map(stream).collect(),
        }
    }

    /// The next timer of all shards, and its place. Of one that cannot be read only the place is known.
    async fn next(&mut self) -> StoreResult<Option<(Cursor, StoreResult<TimerRow>)>> {
        if self.streams.iter().any(|stream| stream.buffer.is_empty() && !stream.is_ended) {
            self.fill().await?;
        }
        let key = |stream: &Stream| stream.buffer.front().map(|(cursor, _)| (cursor.at, cursor.id));
        let heads = self.streams.iter().enumerate().filter_map(|(number, stream)| Some((key(stream)?, number)));
        let first = if self.is_descending { heads.max() } else { heads.min() };
        Ok(first.and_then(|(_, number)| self.streams[number].buffer.pop_front()))
    }

    /// Reads on in all shards of which nothing is left.
    async fn fill(&mut self) -> StoreResult<()> {
        let (store, index, is_descending, columns, limit) =
            (self.store, self.index, self.is_descending, self.columns, self.chunk);
        let mut work: Vec<BoxFuture<'_, StoreResult<Vec<crate::Row>>>> = Vec::new();
        let mut places = Vec::new();
        for (place, stream) in self.streams.iter().enumerate() {
            if !stream.buffer.is_empty() || stream.is_ended {
                continue;
            }
            places.push(place);
            let range = Range { index: Some(index), from: stream.from.clone(), to: stream.to.clone(), is_descending, limit };
            let partition = layout::timers(stream.shard);
            work.push(Box::pin(async move { store.database.range(&partition, &range, columns, Consistency::Committed).await }));
        }
        let pages = PartitionedStore::on_all(work).await;
        for (place, page) in places.into_iter().zip(pages) {
            let (page, sort) = (page?, self.sort);
            let stream = &mut self.streams[place];
            stream.is_ended = page.len() < limit;
            if let Some(last) = page.last() {
                if is_descending {
                    stream.to = Some(last.position.clone());
                } else {
                    stream.from = after(last.position.clone());
                }
            }
            for row in page {
                let Some(id) = layout::timer_id(&row.key) else { continue };
                let Some(at) = layout::moment(&row.position, 0) else { continue };
                let read = TimerRow::read(id, &row, columns);
                let is_here = read.as_ref().map_or(true, |read| at.as_micros() == read.time(sort));
                // A timer that moved since is shown where it is now.
                if is_here {
                    stream.buffer.push_back((Cursor { at, id }, read));
                }
            }
        }
        self.chunk = (self.chunk * 2).min(CHUNK_MAX);
        Ok(())
    }
}

/// The part of an index that lies in a period and after a cursor.
fn bounds(period: Period, cursor: Option<Cursor>, is_descending: bool) -> (Vec<u8>, Option<Vec<u8>>) {
    let at = |at: Timestamp| layout::ordered(at.as_micros()).to_vec();
    let (mut from, mut to) = (period.from.map_or_else(Vec::new, at), period.to.map(at));
    if let Some(cursor) = cursor {
        let position = layout::by_time(cursor.at.as_micros(), cursor.id);
        if is_descending {
            to = Some(to.map_or_else(|| position.clone(), |to| to.min(position.clone())));
        } else {
            from = from.max(after(position));
        }
    }
    (from, to)
}

/// What cannot be read may be anything.
fn may_fit(filter: &Filter, row: &StoreResult<TimerRow>) -> bool {
    row.as_ref().map_or(true, |row| fits(filter, row))
}

fn fits(filter: &Filter, row: &TimerRow) -> bool {
    let (head, body) = (&row.head, row.body().ok());
    if !filter.fits_standing(head.status, head.last_error.as_deref()) {
        return false;
    }
    filter.fits_definition(&Candidate {
        namespace: &head.namespace,
        key: head.key.as_deref(),
        group: head.group.as_deref(),
        execute_at: Timestamp::from_micros(head.execute_at),
        created_at: Timestamp::from_micros(head.created_at),
        correlation_id: head.correlation_id.as_deref(),
        metadata: body.and_then(|body| body.metadata.as_deref()),
        destination: filter.destination.as_ref().and(body).and_then(|body| Callback::address_in(&body.callback)),
    })
}

fn summary(row: &TimerRow) -> StoreResult<Summary> {
    let head = &row.head;
    let corrupt = |error: Invalid| StoreError::Corrupt(domain::Cause::of(error.to_string()));
    Ok(Summary {
        id: row.id,
        namespace: Namespace::parse(&head.namespace).map_err(corrupt)?,
        key: head.key.as_deref().map(Key::parse).transpose().map_err(corrupt)?,
        group: head.group.as_deref().map(Group::parse).transpose().map_err(corrupt)?,
        callback_kind: head.kind.clone(),
        correlation_id: head.correlation_id.as_deref().map(CorrelationId::parse).transpose().map_err(corrupt)?,
        execute_at: Timestamp::from_micros(head.execute_at),
        status: head.status,
        attempt: u32::try_from(head.attempt).unwrap_or(u32::MAX),
        last_error: head.last_error.clone(),
        executed_at: head.executed_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(head.created_at),
        updated_at: Timestamp::from_micros(head.updated_at),
        revision: row.revision(),
    })
}

pub async fn list(store: &PartitionedStore, query: &ListQuery) -> StoreResult<Page> {
    let began = store.clock.monotonic();
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let mut merged = Merged::new(store, query);
    let mut page = Page::default();
    let (mut passed, mut last) = (0, None);
    while let Some((cursor, row)) = merged.next().await? {
        let is_over = page.scanned >= LOOKED_AT_MIN && store.clock.monotonic().saturating_sub(began) >= query.budget;
        if is_over {
            return Ok(Page { next: last, complete: false, ..page });
        }
        let fits = may_fit(&query.filter, &row);
        if fits && passed >= query.offset && page.count() == limit {
            return Ok(Page { next: last, ..page });
        }
        page.scanned += 1;
        last = Some(cursor);
        if !fits {
            continue;
        }
        if passed < query.offset {
            passed += 1;
            continue;
        }
        match row.and_then(|row| summary(&row)) {
            Ok(summary) => page.timers.push(summary),
            Err(StoreError::Corrupt(cause)) => {
                tracing::warn!(timer.id = %cursor.id, error = %cause, "a stored timer cannot be listed");
                page.unreadable.push(cursor);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

pub async fn count(store: &PartitionedStore, filter: &Filter, budget: Duration) -> StoreResult<Count> {
    if let Some(count) = count_by_key(store, filter).await? {
        return Ok(count);
    }
    let began = store.clock.monotonic();
    let query = ListQuery { filter: filter.clone(), limit: u32::MAX, order: Order::Ascending, ..ListQuery::default() };
    let mut merged = Merged::new(store, &query);
    let (mut found, mut scanned) = (0, 0);
    while let Some((_, row)) = merged.next().await? {
        scanned += 1;
        found += u64::from(may_fit(filter, &row));
        let is_over = scanned >= COUNTED_MIN && store.clock.monotonic().saturating_sub(began) >= budget;
        if is_over || found >= COUNTED_MAX {
            return Ok(Count::about(found));
        }
    }
    Ok(Count::exactly(found))
}

/// A key of named namespaces is one timer in each of them at most.
async fn count_by_key(store: &PartitionedStore, filter: &Filter) -> StoreResult<Option<Count>> {
    let Some(key) = filter.key.as_ref().filter(|_| !filter.namespaces.is_empty()) else { return Ok(None) };
    let ids: Vec<TimerId> = filter.namespaces.iter().map(|namespace| TimerId::keyed(namespace, key)).collect();
    let rows = store.rows(&ids, Columns::HEAD_AND_BODY).await?;
    Ok(Some(Count::exactly(rows.iter().flatten().filter(|row| fits(filter, row)).count() as u64)))
}
