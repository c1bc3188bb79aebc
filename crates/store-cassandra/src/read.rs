//! Reading rows by their keys, and ranges of rows and of index entries.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use scylla::{
    client::session::Session,
    deserialize::row::ColumnIterator,
    response::{PagingState, PagingStateResponse},
    serialize::row::SerializeRow,
    statement::{Consistency as Level, prepared::PreparedStatement},
};
use store::{StoreError, StoreResult};
use store_partitioned::{Columns, Consistency, Partition, Range, Row, Version};
use uuid::Uuid;

use crate::{
    failure::{of_read, unreadable},
    gaps::{Gaps, Stretch},
    notes::Observed,
    schema::{NOTE, NOTE_KEY, ROW},
    statements::{Form, Levels, Selected, Statements, kind_of},
};

/// How many keys one statement names, and how many such statements of one call are under way at once.
const KEYS_AT_ONCE: usize = 250;
const STATEMENTS_AT_ONCE: usize = 4;
/// How often a read is tried in all, and how long it waits in between, once more each time.
const ATTEMPTS_MAX: u32 = 4;
const PAUSE: Duration = Duration::from_millis(25);

pub struct Reader {
    pub session: Arc<Session>,
    pub statements: Arc<Statements>,
    pub levels: Levels,
    pub observed: Observed,
}

impl Reader {
    /// The rows with these keys, in their order.
    pub async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        level: Level,
    ) -> StoreResult<Vec<Option<Row>>> {
        let statement = self.statement(Form::Keys, Selected::Row(columns), level).await?;
        let mut parts = Vec::with_capacity(keys.len().div_ceil(KEYS_AT_ONCE));
        for keys in keys.chunks(KEYS_AT_ONCE) {
            parts.push(self.rows(&statement, (partition.as_str(), ROW, keys), usize::MAX));
        }
        let found: Vec<Vec<Row>> = stream::iter(parts).buffer_unordered(STATEMENTS_AT_ONCE).try_collect().await?;
        let mut found: HashMap<Vec<u8>, Row> = found.into_iter().flatten().map(|row| (row.key.clone(), row)).collect();
        // A key may be named twice.
        let is_single = found.len() == keys.len();
        Ok(keys.iter().map(|key| if is_single { found.remove(key) } else { found.get(key).cloned() }).collect())
    }

    /// The same in the one order of all writes of the partition.
    pub async fn read_serially(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
    ) -> StoreResult<Vec<Option<Row>>> {
        let statement = self.statement(Form::Keys, Selected::Row(columns), self.levels.linearizable).await?;
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            // One after the other: these are Paxos rounds on one partition.
            let rows = self.rows(&statement, (partition.as_str(), ROW, keys), usize::MAX).await?;
            let mut rows: HashMap<Vec<u8>, Row> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
            found.extend(keys.iter().map(|key| rows.remove(key)));
        }
        Ok(found)
    }

    pub async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        let level = self.levels.of(consistency);
        if range.index.is_none() {
            return self.part(partition, range, Selected::Row(columns), level).await;
        }
        let gaps = self.gaps(partition, level).await?;
        let (mut rest, mut found) = (range.clone(), Vec::new());
        loop {
            let entries = self.entries(partition, &rest, &gaps, level).await?;
            if columns == Columns::NONE {
                return Ok(entries);
            }
            let is_end = entries.len() < rest.limit;
            let last = entries.last().map(|entry| entry.position.clone());
            let keys: Vec<Vec<u8>> = entries.iter().map(|entry| entry.key.clone()).collect();
            let rows = self.read(partition, &keys, columns, level).await?;
            let met = entries.into_iter().zip(rows);
            found.extend(met.filter_map(|(entry, row)| Some(Row { position: entry.position, ..row? })));
            // A row that is gone since its entry was read leaves a gap, which the rest of the range fills.
            match last {
                Some(last) if !is_end && found.len() < range.limit => rest.go_on(last, range.limit - found.len()),
                _ => return Ok(found),
            }
        }
    }

    /// The entries of a range of an index, without looking where it is empty.
    async fn entries(&self, partition: &Partition, range: &Range, gaps: &Gaps, level: Level) -> StoreResult<Vec<Row>> {
        let kind = kind_of(range.index);
        let mut parts = gaps.rest(kind, &range.from, range.to.as_deref());
        if range.is_descending {
            parts.reverse();
        }
        let mut found = Vec::new();
        for (from, to) in parts {
            let part = Range { from, to, limit: range.limit - found.len(), ..range.clone() };
            found.extend(self.part(partition, &part, Selected::Entry, level).await?);
            if found.len() >= range.limit {
                break;
            }
        }
        if !range.is_descending {
            let end = found.first().map(|first| &first.position).or(range.to.as_ref());
            if let Some(end) = end {
                self.observed.note(partition, kind, &range.from, end);
            }
        }
        Ok(found)
    }

    /// What the partition notes of its empty stretches.
    pub async fn gaps(&self, partition: &Partition, level: Level) -> StoreResult<Gaps> {
        let statement = self.statement(Form::Keys, Selected::Row(Columns::HEAD), level).await?;
        let rows = self.rows(&statement, (partition.as_str(), NOTE, [NOTE_KEY.as_slice()].as_slice()), 1).await?;
        let note = rows.into_iter().next();
        Ok(note.map(|note| Gaps::decode(Some(Uuid::from_u128(note.version.0)), &note.head)).unwrap_or_default())
    }

    /// Whether no entry lives in a stretch, in the one order of all writes.
    pub async fn is_empty(&self, partition: &Partition, stretch: &Stretch) -> StoreResult<bool> {
        let statement = self.statement(Form::FromTo, Selected::Entry, self.levels.linearizable).await?;
        let values = (partition.as_str(), stretch.kind, stretch.from.as_slice(), stretch.to.as_slice(), 1);
        Ok(self.rows(&statement, values, 1).await?.is_empty())
    }

    /// One part of a partition, in its order. Entries have their position and the key of their row.
    async fn part(&self, partition: &Partition, range: &Range, selected: Selected, level: Level) -> StoreResult<Vec<Row>> {
        if range.limit == 0 || range.to.as_ref().is_some_and(|to| *to <= range.from) {
            return Ok(Vec::new());
        }
        let form = match (&range.to, range.is_descending) {
            (None, false) => Form::From,
            (Some(_), false) => Form::FromTo,
            (None, true) => Form::FromBackwards,
            (Some(_), true) => Form::FromToBackwards,
        };
        let mut statement = self.statement(form, selected, level).await?;
        let limit = i32::try_from(range.limit).unwrap_or(i32::MAX);
        statement.set_page_size(statement.get_page_size().min(limit));
        let (part, kind, from) = (partition.as_str(), kind_of(range.index), range.from.as_slice());
        match &range.to {
            Some(to) => self.rows(&statement, (part, kind, from, to.as_slice(), limit), range.limit).await,
            None => self.rows(&statement, (part, kind, from, limit), range.limit).await,
        }
    }

    async fn statement(&self, form: Form, selected: Selected, level: Level) -> StoreResult<PreparedStatement> {
        let mut statement = self.statements.read(&self.session, form, selected).await.map_err(of_read)?;
        statement.set_consistency(level);
        Ok(statement)
    }

    /// All pages of an answer, up to `limit` rows.
    async fn rows(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Send + Sync,
        limit: usize,
    ) -> StoreResult<Vec<Row>> {
        let (mut found, mut page, mut attempt) = (Vec::new(), PagingState::start(), 1);
        loop {
            let answered = self.session.execute_single_page(statement, &values, page.clone()).await;
            let (answer, next) = match answered {
                Ok(answered) => answered,
                Err(error) if attempt == ATTEMPTS_MAX => return Err(of_read(error)),
                Err(_) => {
                    tokio::time::sleep(PAUSE * attempt).await;
                    attempt += 1;
                    continue;
                }
            };
            let rows = answer.into_rows_result().map_err(unreadable)?;
            for columns in rows.rows::<ColumnIterator<'_, '_>>().map_err(unreadable)? {
                found.push(row(columns.map_err(unreadable)?)?);
            }
            match next {
                PagingStateResponse::HasMorePages { state } if found.len() < limit => page = state,
                _ => return Ok(found),
            }
        }
    }
}

/// Goes on behind the position `last`, for `limit` more rows.
trait GoOn {
    fn go_on(&mut self, last: Vec<u8>, limit: usize);
}

impl GoOn for Range {
    fn go_on(&mut self, last: Vec<u8>, limit: usize) {
        self.limit = limit;
        if self.is_descending {
            self.to = Some(last);
        } else {
            self.from = store_partitioned::after(last);
        }
    }
}

fn row(columns: ColumnIterator<'_, '_>) -> StoreResult<Row> {
    let mut row = Row::default();
    for column in columns {
        let column = column.map_err(unreadable)?;
        let bytes = column.slice.map(|slice| slice.as_slice()).unwrap_or_default();
        match column.spec.name() {
            "key" => row.key = bytes.to_vec(),
            "version" => row.version = version(bytes)?,
            "head" => row.head = bytes.to_vec(),
            "body" => row.body = bytes.to_vec(),
            "log" => row.log = bytes.to_vec(),
            // An index entry: its own key is a position.
            "row" => row.position = std::mem::replace(&mut row.key, bytes.to_vec()),
            _ => {}
        }
    }
    Ok(row)
}

pub fn version(bytes: &[u8]) -> StoreResult<Version> {
    let version = Uuid::from_slice(bytes).map_err(|_| StoreError::Corrupt("a row has no version".into()))?;
    Ok(Version(version.as_u128()))
}
