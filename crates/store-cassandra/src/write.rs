//! Writing rows: under conditions, in batches that are all or nothing, or without conditions.
//!
//! ```text
//!   batch ─▶ applied: all are
//!         ├▶ refused: the rows of its conditions come back; what does not fit them is refused, the rest is sent again
//!         ├▶ answer lost: read back, linearizably; what still fits is sent again
//!         └▶ not sent: nothing was done
//! ```

use std::{collections::HashMap, sync::Arc, time::Duration};

use scylla::{
    client::session::Session,
    deserialize::row::ColumnIterator,
    response::query_result::QueryResult,
    statement::batch::{Batch, BatchStatement, BatchType},
    value::MaybeUnset,
};
use store::{StoreError, StoreResult};
use store_partitioned::{Change, Columns, Condition, Index, Outcome, Partition, Version, Write};
use uuid::Uuid;

use crate::{
    failure::{of_write, unreadable},
    gaps::Gaps,
    notes::Notes,
    portions::portions,
    read::{Reader, version},
    schema::{NOTE, ROW},
    statements::{Column, Statements, Values},
};

/// How often what is left of a batch is sent after its answer was lost, and how long that waits, once more each time.
const LOST_ANSWERS_MAX: u32 = 4;
/// How often it is sent in all: each refusal takes out at least one row, or finds another note.
const ROUNDS_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(40);

pub struct Writer {
    session: Arc<Session>,
    statements: Arc<Statements>,
    pub reader: Arc<Reader>,
    pub notes: Notes,
}

/// The versions of the rows that conditions name, as far as there are such rows.
type Found = HashMap<Vec<u8>, Version>;

pub enum Answer {
    Applied,
    /// Whether the note of the partition was another one, and the rows.
    Refused(bool, Found),
}

/// A write whose outcome is open.
struct Open {
    place: usize,
    write: Write,
    /// It was sent before, and may have been applied.
    is_uncertain: bool,
}

impl Writer {
    pub fn new(session: Arc<Session>, statements: Arc<Statements>, reader: Arc<Reader>) -> Self {
        Self { session, statements, reader, notes: Notes::default() }
    }

    /// Writes rows under conditions, no more than one batch carries. No other such write of this process is under way on this partition.
    pub async fn write_conditionally(&self, partition: &Partition, writes: Vec<Write>) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = writes.iter().map(|_| None).collect();
        let open = |(place, write)| Open { place, write, is_uncertain: false };
        let mut open: Vec<Open> = writes.into_iter().enumerate().map(open).collect();
        let (mut lost_answers, mut rounds) = (0, 0);
        while !open.is_empty() {
            rounds += 1;
            let mut is_stuck = false;
            let found = match self.send(partition, &open).await {
                Ok(Answer::Applied) => {
                    open.drain(..).for_each(|open| outcomes[open.place] = Some(Outcome::Applied));
                    break;
                }
                Ok(Answer::Refused(is_note_another, found)) => {
                    metrics::counter!("timer_cassandra_refusals_total").increment(1);
                    is_stuck = !is_note_another;
                    Ok(found)
                }
                Err(error) if error.is_not_done() => Err(error),
                Err(error) => {
                    metrics::counter!("timer_cassandra_unknown_total").increment(1);
                    open.iter_mut().for_each(|open| open.is_uncertain = true);
                    lost_answers += 1;
                    tokio::time::sleep(PAUSE * lost_answers).await;
                    self.read_back(partition, &open).await.map_err(|_| error)
                }
            };
            let before = open.len();
            match found {
                Ok(found) => open.retain(|open| {
                    outcomes[open.place] = open.judge(found.get(&open.write.key).copied());
                    outcomes[open.place].is_none()
                }),
                Err(error) => open.drain(..).for_each(|open| outcomes[open.place] = Some(open.fail(error.clone()))),
            }
            // A refusal that names nothing which does not fit would be repeated for ever.
            is_stuck &= open.len() == before;
            if lost_answers == LOST_ANSWERS_MAX || rounds == ROUNDS_MAX || is_stuck {
                let error = StoreError::Unavailable("it was sent several times without a clear answer".into());
                open.drain(..).for_each(|open| outcomes[open.place] = Some(open.fail(error.clone())));
            }
        }
        let unanswered = || Outcome::Failed(StoreError::Unknown("it has no answer".into()));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unanswered)).collect()
    }

    /// Writes rows without conditions.
    pub async fn write_plainly(&self, partition: &Partition, writes: Vec<Write>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for part in portions(writes) {
            let values: Vec<Values<'_>> = part.iter().map(|write| plain(partition.as_str(), write)).collect();
            let outcome = match self.execute(values).await {
                Ok(_) => Outcome::Applied,
                Err(error) => Outcome::Failed(error),
            };
            outcomes.extend(part.iter().map(|_| outcome.clone()));
        }
        outcomes
    }

    async fn send(&self, partition: &Partition, open: &[Open]) -> StoreResult<Answer> {
        metrics::histogram!("timer_cassandra_batch_rows").record(u32::try_from(open.len()).unwrap_or(u32::MAX));
        let values: Vec<Values<'_>> = open.iter().flat_map(|open| conditional(partition.as_str(), &open.write)).collect();
        let entered: Vec<(i8, &[u8])> = values.iter().filter_map(entered).collect();
        if entered.is_empty() {
            return answer(self.execute(values).await?, None);
        }
        let known = self.known_gaps(partition).await?;
        let mut gaps = known.clone();
        let is_cut = entered.into_iter().fold(false, |is_cut, (kind, position)| gaps.cut(kind, position) || is_cut);
        self.note(partition, &known, gaps, is_cut, values).await
    }

    /// Sends a batch together with the note of the partition: as it is known, or changed.
    pub async fn note(
        &self,
        partition: &Partition,
        known: &Gaps,
        mut gaps: Gaps,
        is_changed: bool,
        values: Vec<Values<'_>>,
    ) -> StoreResult<Answer> {
        if is_changed || known.version.is_none() {
            gaps.version = Some(Uuid::now_v7());
        }
        let (text, version) = (gaps.encode(), gaps.version.unwrap_or_default());
        let note = Values::Note((version, column(is_changed.then_some(&text)), partition.as_str(), known.version));
        let sent = match self.execute(values.into_iter().chain([note]).collect()).await {
            Ok(result) => answer(result, Some(known.version)),
            Err(error) => Err(error),
        };
        match &sent {
            Ok(Answer::Applied) => self.notes.know(partition, gaps),
            // The next one reads it.
            Ok(Answer::Refused(true, _)) | Err(_) => self.notes.forget(partition),
            Ok(Answer::Refused(false, _)) => {}
        }
        sent
    }

    pub async fn known_gaps(&self, partition: &Partition) -> StoreResult<Gaps> {
        match self.notes.known(partition) {
            Some(gaps) => Ok(gaps),
            None => {
                let gaps = self.reader.gaps(partition, self.reader.levels.committed).await?;
                self.notes.know(partition, gaps.clone());
                Ok(gaps)
            }
        }
    }

    async fn execute(&self, values: Vec<Values<'_>>) -> StoreResult<QueryResult> {
        let statements: Vec<BatchStatement> = values.iter().map(|values| self.statements.of(values).clone().into()).collect();
        // All of one partition, so that it is written at once without a log.
        let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
        self.statements.set_levels(&mut batch);
        self.session.batch(&batch, values).await.map_err(of_write)
    }

    async fn read_back(&self, partition: &Partition, open: &[Open]) -> StoreResult<Found> {
        let keys: Vec<Vec<u8>> = open.iter().map(|open| open.write.key.clone()).collect();
        let rows = self.reader.read_serially(partition, &keys, Columns::HEAD).await?;
        Ok(rows.into_iter().flatten().map(|row| (row.key, row.version)).collect())
    }
}

impl Open {
    /// What became of it, when its row has this version in the order of all writes; `None` if it can be sent, again or not.
    fn judge(&self, found: Option<Version>) -> Option<Outcome> {
        let own = match &self.write.change {
            Change::Put { version, .. } => Some(*version),
            Change::Delete => None,
        };
        let holds = match self.write.condition {
            Condition::Absent => found.is_none(),
            Condition::Is(version) => found == Some(version),
            Condition::Any => true,
        };
        // A row that is not there may have been made by this write, and be removed since.
        let may_be_sent = holds && !(self.is_uncertain && self.write.condition == Condition::Absent);
        match found {
            _ if may_be_sent => None,
            Some(found) if own == Some(found) => Some(Outcome::Applied),
            _ if self.is_uncertain => {
                let why = "the answer was lost, and the row has been changed since or is not there";
                Some(Outcome::Failed(StoreError::Unknown(why.into())))
            }
            _ => Some(Outcome::Refused),
        }
    }

    fn fail(&self, error: StoreError) -> Outcome {
        match error {
            StoreError::Unknown(_) => Outcome::Failed(error),
            error if self.is_uncertain => Outcome::Failed(StoreError::Unknown(domain::Cause::of(error))),
            error => Outcome::Failed(error),
        }
    }
}

/// The kind and the position of an entry that is made.
fn entered<'a>(values: &Values<'a>) -> Option<(i8, &'a [u8])> {
    match values {
        Values::Enter((_, kind, position, _)) => Some((*kind, *position)),
        _ => None,
    }
}

/// What a conditional batch answers: that it was applied, or the rows that its conditions name. `note` is the version of the note that it
/// named, if it did.
fn answer(result: QueryResult, note: Option<Option<Uuid>>) -> StoreResult<Answer> {
    // It was sent, and what it answered cannot be read: that is an answer which is lost.
    let lost = |error: StoreError| StoreError::Unknown(domain::Cause::of(error));
    let rows = result.into_rows_result().map_err(|error| lost(unreadable(error)))?;
    let (mut is_applied, mut found, mut met_note) = (false, Found::new(), None);
    for columns in rows.rows::<ColumnIterator<'_, '_>>().map_err(|error| lost(unreadable(error)))? {
        let (mut kind, mut key, mut own) = (None, None, None);
        for column in columns.map_err(|error| lost(unreadable(error)))? {
            let column = column.map_err(|error| lost(unreadable(error)))?;
            let bytes = column.slice.map(|slice| slice.as_slice());
            match column.spec.name() {
                "[applied]" => is_applied |= bytes == Some(&[1][..]),
                "kind" => kind = bytes,
                "key" => key = bytes,
                "version" => own = bytes,
                _ => {}
            }
        }
        let (Some(key), Some(own), Some(&[kind])) = (key, own, kind) else { continue };
        let own = version(own).map_err(lost)?;
        match kind.cast_signed() {
            ROW => drop(found.insert(key.to_vec(), own)),
            NOTE => met_note = Some(Uuid::from_u128(own.0)),
            _ => {}
        }
    }
    Ok(if is_applied { Answer::Applied } else { Answer::Refused(note.is_some_and(|note| note != met_note), found) })
}

fn column(value: Option<&Vec<u8>>) -> Column<'_> {
    value.map_or(MaybeUnset::Unset, |bytes| MaybeUnset::Set(bytes.as_slice()))
}

/// The row under its condition, and what changes in the indexes.
fn conditional<'a>(part: &'a str, write: &'a Write) -> Vec<Values<'a>> {
    let key = write.key.as_slice();
    let expected = match write.condition {
        Condition::Is(Version(version)) => Some(Uuid::from_u128(version)),
        Condition::Absent | Condition::Any => None,
    };
    let mut values = Vec::with_capacity(1 + 2 * Index::COUNT);
    let after = match &write.change {
        Change::Put { version, head, body, log, positions } => {
            let (version, head, body, log) =
                (Uuid::from_u128(version.0), head.as_slice(), column(body.as_ref()), column(log.as_ref()));
            values.push(match expected {
                Some(expected) => Values::Update((version, head, body, log, part, key, expected)),
                None => Values::Insert((part, key, version, head, body, log)),
            });
            Some(positions)
        }
        Change::Delete => {
            values.push(Values::Remove((part, key, expected.unwrap_or_default())));
            None
        }
    };
    for index in Index::ALL {
        let (left, entered) = (write.before.at(index), after.and_then(|after| after.at(index)));
        if left == entered {
            continue;
        }
        let kind = index.number().cast_signed();
        values.extend(left.map(|position| Values::Leave((part, kind, position))));
        values.extend(entered.map(|position| Values::Enter((part, kind, position, key))));
    }
    values
}

fn plain<'a>(part: &'a str, write: &'a Write) -> Values<'a> {
    let key = write.key.as_slice();
    match &write.change {
        Change::Put { version, head, body, log, .. } => {
            Values::Put((part, key, Uuid::from_u128(version.0), head, column(body.as_ref()), column(log.as_ref())))
        }
        Change::Delete => Values::Delete((part, key)),
    }
}

#[cfg(test)]
mod tests {
    use store_partitioned::Positions;

    use super::*;

    const OWN: Version = Version(7);

    fn open(condition: Condition, is_uncertain: bool) -> Open {
        let change = Change::Put { version: OWN, head: Vec::new(), body: None, log: None, positions: Positions::default() };
        let write = Write { key: b"a".to_vec(), condition, change, before: Positions::default() };
        Open { place: 0, write, is_uncertain }
    }

    #[test]
    fn what_a_condition_meets_decides() {
        let (read, other) = (Version(1), Version(2));
        let said = |condition, is_uncertain, found| match open(condition, is_uncertain).judge(found) {
            None => "sent",
            Some(Outcome::Applied) => "applied",
            Some(Outcome::Refused) => "refused",
            Some(Outcome::Failed(error)) => error.kind(),
        };
        for (condition, is_uncertain, found, expected) in [
            (Condition::Is(read), false, Some(read), "sent"),
            (Condition::Is(read), false, Some(other), "refused"),
            (Condition::Is(read), false, None, "refused"),
            (Condition::Absent, false, None, "sent"),
            (Condition::Absent, false, Some(other), "refused"),
            // After a lost answer.
            (Condition::Is(read), true, Some(read), "sent"),
            (Condition::Is(read), true, Some(OWN), "applied"),
            (Condition::Is(read), true, Some(other), "unknown"),
            (Condition::Is(read), true, None, "unknown"),
            (Condition::Absent, true, Some(OWN), "applied"),
            (Condition::Absent, true, None, "unknown"),
        ] {
            assert_eq!(said(condition, is_uncertain, found), expected, "{condition:?} {is_uncertain} {found:?}");
        }
    }

    #[test]
    fn only_positions_that_change_are_written() {
        let positions = |first: &[u8], second: &[u8]| {
            Positions::default().with(Index::First, first.to_vec()).with(Index::Second, second.to_vec())
        };
        let mut write = open(Condition::Is(Version(1)), false).write;
        write.before = positions(b"1", b"2");
        write.change = Change::Put { version: OWN, head: Vec::new(), body: None, log: None, positions: positions(b"3", b"2") };
        let values = conditional("p", &write);
        assert!(matches!(values[..], [Values::Update(_), Values::Leave(("p", 1, b"1")), Values::Enter(("p", 1, b"3", b"a"))]));
        write.change = Change::Delete;
        assert_eq!(conditional("p", &write).len(), 3);
    }
}
