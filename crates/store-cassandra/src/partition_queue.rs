//! The queue of a partition: what waits for a Paxos round there, gathered, one round at a time.
//!
//! ```text
//!   callers ─▶ queue of the partition ─▶ one task while something waits: reads at once, then one batch of writes, and again
//! ```
//!
//! Two Paxos rounds on one partition hinder each other, and one round costs the same for one row and for hundreds.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use store::{StoreError, StoreResult};
use store_partitioned::{Columns, Outcome, Partition, Row, Write};
use tokio::sync::oneshot;

use crate::{
    portions::{BYTES_MAX, ROWS_MAX, portions, write_bytes},
    read::Reader,
    tidy::tidy,
    write::Writer,
};

struct WriteJob {
    writes: Vec<Write>,
    answer: oneshot::Sender<Vec<Outcome>>,
}

struct ReadJob {
    keys: Vec<Vec<u8>>,
    columns: Columns,
    answer: oneshot::Sender<StoreResult<Vec<Option<Row>>>>,
}

#[derive(Default)]
struct Waiting {
    reads: Vec<ReadJob>,
    writes: VecDeque<WriteJob>,
    is_served: bool,
}

#[derive(Default)]
struct PartitionQueue {
    waiting: Mutex<Waiting>,
}

/// The queues of all partitions. A store has few: some for each of its shards.
pub struct PartitionQueues {
    queues: Mutex<HashMap<Partition, Arc<PartitionQueue>>>,
    reader: Arc<Reader>,
    writer: Arc<Writer>,
}

impl PartitionQueues {
    pub fn new(reader: Arc<Reader>, writer: Arc<Writer>) -> Self {
        Self { queues: Mutex::default(), reader, writer }
    }

    /// Writes under conditions, together with what else waits for this partition.
    pub async fn write(&self, partition: &Partition, writes: Vec<Write>) -> StoreResult<Vec<Outcome>> {
        let (answer, answered) = oneshot::channel();
        self.join(partition, |waiting| waiting.writes.push_back(WriteJob { writes, answer }));
        answered.await.map_err(|_| StoreError::Unknown("the task that wrote it has ended".into()))
    }

    /// Reads linearizably, together with what else waits for this partition.
    pub async fn read(&self, partition: &Partition, keys: Vec<Vec<u8>>, columns: Columns) -> StoreResult<Vec<Option<Row>>> {
        let (answer, answered) = oneshot::channel();
        self.join(partition, |waiting| waiting.reads.push(ReadJob { keys, columns, answer }));
        answered.await.map_err(|_| StoreError::Unavailable("the task that read it has ended".into()))?
    }

    fn join(&self, partition: &Partition, add: impl FnOnce(&mut Waiting)) {
        let queue = {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(queues.entry(partition.clone()).or_default())
        };
        let mut waiting = queue.waiting();
        add(&mut waiting);
        if !waiting.is_served {
            waiting.is_served = true;
            drop(waiting);
            // Served by a task of its own: a caller that gives up must not strand the calls that wait with it.
            let serving = Serving { queue, partition: partition.clone(), is_over: false };
            tokio::spawn(serving.serve(Arc::clone(&self.reader), Arc::clone(&self.writer)));
        }
    }
}

impl PartitionQueue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that serves a queue.
struct Serving {
    queue: Arc<PartitionQueue>,
    partition: Partition,
    is_over: bool,
}

/// Should the task end before its time, the next caller starts another.
impl Drop for Serving {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.waiting().is_served = false;
        }
    }
}

impl Serving {
    async fn serve(mut self, reader: Arc<Reader>, writer: Arc<Writer>) {
        loop {
            let (reads, writes) = {
                let mut waiting = self.queue.waiting();
                let reads = std::mem::take(&mut waiting.reads);
                let writes = next_batch(&mut waiting.writes);
                if reads.is_empty() && writes.is_empty() {
                    waiting.is_served = false;
                    self.is_over = true;
                    return;
                }
                (reads, writes)
            };
            if !reads.is_empty() {
                read_together(&reader, &self.partition, reads).await;
            }
            if !writes.is_empty() {
                write_together(&writer, &self.partition, writes).await;
                tidy(&writer, &self.partition).await;
            }
        }
    }
}

/// Jobs for one batch: those that waited longest, up to what a batch carries, and no two of one row. A job that is larger goes alone,
/// and is split. Callers that gave up are left out.
fn next_batch(waiting: &mut VecDeque<WriteJob>) -> Vec<WriteJob> {
    let (mut taken, mut keys, mut rows, mut bytes) = (Vec::new(), HashSet::new(), 0, 0);
    waiting.retain(|job| !job.answer.is_closed());
    while let Some(job) = waiting.front() {
        rows += job.writes.len();
        bytes += job.writes.iter().map(write_bytes).sum::<usize>();
        let is_met = job.writes.iter().any(|write| keys.contains(&write.key));
        if !taken.is_empty() && (rows > ROWS_MAX || bytes > BYTES_MAX || is_met) {
            break;
        }
        keys.extend(job.writes.iter().map(|write| write.key.clone()));
        taken.extend(waiting.pop_front());
    }
    taken
}

async fn read_together(reader: &Reader, partition: &Partition, jobs: Vec<ReadJob>) {
    let columns = jobs.iter().fold(Columns::NONE, |all, job| Columns {
        head: all.head | job.columns.head,
        body: all.body | job.columns.body,
        log: all.log | job.columns.log,
    });
    let keys: HashSet<&Vec<u8>> = jobs.iter().flat_map(|job| &job.keys).collect();
    let keys: Vec<Vec<u8>> = keys.into_iter().cloned().collect();
    let read = reader.read_serially(partition, &keys, columns).await;
    let found = read.map(|rows| keys.into_iter().zip(rows).collect::<HashMap<_, _>>());
    for job in jobs {
        let answer = match &found {
            Ok(found) => Ok(job.keys.iter().map(|key| restricted(found.get(key)?.as_ref()?, job.columns)).collect()),
            Err(error) => Err(error.clone()),
        };
        // Its caller may have given up.
        drop(job.answer.send(answer));
    }
}

/// The row with no more than the columns that were asked for.
fn restricted(row: &Row, columns: Columns) -> Option<Row> {
    let asked = |is_asked: bool, column: &[u8]| if is_asked { column.to_vec() } else { Vec::new() };
    Some(Row {
        key: row.key.clone(),
        position: Vec::new(),
        version: if columns == Columns::NONE { store_partitioned::Version::default() } else { row.version },
        head: asked(columns.head, &row.head),
        body: asked(columns.body, &row.body),
        log: asked(columns.log, &row.log),
    })
}

async fn write_together(writer: &Writer, partition: &Partition, jobs: Vec<WriteJob>) {
    let (mut writes, mut callers) = (Vec::new(), Vec::new());
    for job in jobs {
        callers.push((job.writes.len(), job.answer));
        writes.extend(job.writes);
    }
    let mut outcomes = Vec::with_capacity(writes.len());
    let left = writes.iter().filter(|write| write.before != store_partitioned::Positions::default()).count();
    for part in portions(writes) {
        outcomes.extend(writer.write_conditionally(partition, part).await);
    }
    writer.notes.count(partition, left);
    let mut outcomes = outcomes.into_iter();
    for (count, answer) in callers {
        // Its caller may have given up.
        drop(answer.send(outcomes.by_ref().take(count).collect()));
    }
}
