//! The database in memory: the measure for drivers, and what simulation and fault injection drive.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use store::StoreResult;

use crate::{
    Change, Columns, Condition, Consistency, Database, Index, Outcome, Partition, Positions, Range, Row, Version, Write,
};

/// All partitions, under one lock. Its replica lags behind by a number of writes, and answers reads that are eventually consistent.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    lag: AtomicUsize,
}

#[derive(Default)]
struct State {
    current: Partitions,
    replica: Partitions,
    /// What the replica has not seen yet.
    log: VecDeque<(Partition, Write)>,
}

type Partitions = BTreeMap<Partition, Contents>;

#[derive(Default)]
struct Contents {
    rows: BTreeMap<Vec<u8>, Stored>,
    indexes: [BTreeMap<Vec<u8>, Vec<u8>>; Index::COUNT],
}

#[derive(Clone, Default)]
struct Stored {
    version: Version,
    head: Vec<u8>,
    body: Vec<u8>,
    log: Vec<u8>,
    positions: Positions,
}

impl Memory {
    /// From now on the replica has seen all writes but the last `writes`.
    pub fn set_lag(&self, writes: usize) {
        self.shared.lag.store(writes, Ordering::SeqCst);
    }

    /// Replaces the body of a row past every condition, as damage would. Says whether there is such a row.
    pub fn spoil(&self, partition: &Partition, key: &[u8], body: &[u8]) -> bool {
        self.damage(partition, key, |row| row.body = body.to_vec())
    }

    /// The same with the head of a row.
    pub fn spoil_head(&self, partition: &Partition, key: &[u8], head: &[u8]) -> bool {
        self.damage(partition, key, |row| row.head = head.to_vec())
    }

    fn damage(&self, partition: &Partition, key: &[u8], damage: impl FnOnce(&mut Stored)) -> bool {
        let mut state = self.state();
        let row = state.current.get_mut(partition).and_then(|contents| contents.rows.get_mut(key));
        row.map(damage).is_some()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.state().current.values().map(|contents| contents.rows.len()).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn partitions(&self, consistency: Consistency) -> &Partitions {
        if consistency == Consistency::Eventual { &self.replica } else { &self.current }
    }

    fn write(&mut self, partition: &Partition, write: Write, lag: usize) -> Outcome {
        if !self.current.entry(partition.clone()).or_default().apply(&write) {
            return Outcome::Refused;
        }
        self.log.push_back((partition.clone(), write));
        while self.log.len() > lag {
            if let Some((partition, write)) = self.log.pop_front() {
                self.replica.entry(partition).or_default().apply(&write);
            }
        }
        Outcome::Applied
    }
}

impl Contents {
    fn apply(&mut self, write: &Write) -> bool {
        let met = self.rows.get(&write.key);
        let holds = match write.condition {
            Condition::Absent => met.is_none(),
            Condition::Is(version) => met.is_some_and(|row| row.version == version),
            Condition::Any => true,
        };
        if !holds {
            return false;
        }
        let before = met.cloned().unwrap_or_default();
        // What a driver with index rows of its own would leave behind, this database refuses loudly.
        assert_eq!(write.before, before.positions, "the writer does not know where the row stands");
        for (index, position) in before.positions.iter() {
            self.indexes[index as usize].remove(position);
        }
        match &write.change {
            Change::Delete => {
                self.rows.remove(&write.key);
            }
            Change::Put { version, head, body, log, positions } => {
                for (index, position) in positions.iter() {
                    let other = self.indexes[index as usize].insert(position.to_vec(), write.key.clone());
                    assert!(other.is_none(), "a position belongs to one row");
                }
                let stored = Stored {
                    version: *version,
                    head: head.clone(),
                    body: body.clone().unwrap_or(before.body),
                    log: log.clone().unwrap_or(before.log),
                    positions: positions.clone(),
                };
                self.rows.insert(write.key.clone(), stored);
            }
        }
        true
    }

    fn range(&self, range: &Range, columns: Columns) -> Vec<Row> {
        if range.to.as_ref().is_some_and(|to| *to <= range.from) {
            return Vec::new();
        }
        let bounds = (Bound::Included(range.from.clone()), range.to.clone().map_or(Bound::Unbounded, Bound::Excluded));
        let mut found: Vec<(&[u8], &[u8])> = match range.index {
            None => self.rows.range(bounds).map(|(key, _)| (&[][..], key.as_slice())).collect(),
            Some(index) => {
                let entries = self.indexes[index as usize].range(bounds);
                entries.map(|(position, key)| (position.as_slice(), key.as_slice())).collect()
            }
        };
        if range.is_descending {
            found.reverse();
        }
        let row = |(position, key): (&[u8], &[u8])| Some(Row { position: position.to_vec(), ..self.read(key, columns)? });
        found.into_iter().take(range.limit).filter_map(row).collect()
    }

    fn read(&self, key: &[u8], columns: Columns) -> Option<Row> {
        let stored = self.rows.get(key)?;
        let asked = |is_asked: bool, column: &Vec<u8>| if is_asked { column.clone() } else { Vec::new() };
        Some(Row {
            key: key.to_vec(),
            position: Vec::new(),
            version: if columns == Columns::NONE { Version::default() } else { stored.version },
            head: asked(columns.head, &stored.head),
            body: asked(columns.body, &stored.body),
            log: asked(columns.log, &stored.log),
        })
    }
}

#[async_trait]
impl Database for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn set_up(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn read(
        &self,
        partition: &Partition,
        keys: &[Vec<u8>],
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Option<Row>>> {
        let state = self.state();
        let contents = state.partitions(consistency).get(partition);
        Ok(keys.iter().map(|key| contents?.read(key, columns)).collect())
    }

    async fn range(
        &self,
        partition: &Partition,
        range: &Range,
        columns: Columns,
        consistency: Consistency,
    ) -> StoreResult<Vec<Row>> {
        let state = self.state();
        let contents = state.partitions(consistency).get(partition);
        Ok(contents.map(|contents| contents.range(range, columns)).unwrap_or_default())
    }

    async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        let lag = self.shared.lag.load(Ordering::SeqCst);
        let mut state = self.state();
        Ok(writes.into_iter().map(|write| state.write(partition, write, lag)).collect())
    }

    async fn ping(&self) -> StoreResult<()> {
        Ok(())
    }
}
