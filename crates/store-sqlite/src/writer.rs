//! The one thread that writes: it takes whatever is queued, runs it in one transaction and commits once.
//!
//! ```text
//!   create ─┐                    ┌ BEGIN
//!   claim  ─┼─▶ bounded queue ─▶ │ each request     ─▶ fsync ─▶ answers to all
//!   settle ─┘                    └ COMMIT
//! ```
//!
//! While one batch commits the next one gathers. What is done in the background waits until nothing else does, and has a transaction of its
//! own: see [`Batches`]. The answers are given out by a task of the callers' runtime: waking each caller from
//! another thread costs much more than waking them all from one of their own. A request that fails takes no other with it: its batch is rolled
//! back, and its requests run once more, each in a transaction of its own.

mod batches;

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use domain::Clock;
use rusqlite::Connection;
use store::{StoreError, StoreResult, Watermark};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};

use self::batches::Batches;
use crate::{
    checkpoint::LogKeeper,
    failure::{self, Failure},
    metrics,
    presence::{LastWrite, Presence},
    stamp,
    tally::Tally,
};

const QUEUED_REQUESTS_MAX: usize = 1024;
/// What all requests that wait or run may hold together; one that exceeds it waits before the queue.
const QUEUED_KIB_MAX: u32 = 32 * 1024;
/// The number of answers from which a task gives them out.
const ANSWERS_BY_TASK_MIN: usize = 4;

/// Work for the writer. It may be run more than once, but only one run is ever committed.
pub trait Write: Send + 'static {
    type Answer: Send + 'static;
    const NAME: &'static str;

    /// About how many rows it writes.
    fn rows(&self) -> usize;

    /// About how much it holds in memory, where that can be much.
    fn bytes(&self) -> usize {
        0
    }

    /// Whether it can wait until nothing else does. A caller has one such request at a time, unless it gave up waiting.
    fn is_background(&self) -> bool {
        false
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Self::Answer, Failure>;
}

/// The way to the writer.
pub struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Queued>>>,
    permits_kib: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
    progress: Arc<Progress>,
}

/// How many transactions have begun, and how many of them have ended.
#[derive(Debug, Default)]
struct Progress {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Writer {
    /// `commit` is the number in the header: see [`stamp`].
    pub fn start(
        connection: Connection,
        commit: i32,
        log: LogKeeper,
        presence: Arc<Presence>,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(QUEUED_REQUESTS_MAX);
        let commits = Arc::new(AtomicU64::new(0));
        let progress = Arc::new(Progress::default());
        let worker = Worker {
            connection,
            commit,
            is_number_due: true,
            last_write: LastWrite::default(),
            clock,
            log,
            presence,
            tally: Tally::default(),
            commits: Arc::clone(&commits),
            progress: Arc::clone(&progress),
        };
        let thread =
            std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || worker.run(Batches::of(receiver)))?;
        Ok(Self {
            queue: Some(sender),
            permits_kib: Arc::new(Semaphore::new(QUEUED_KIB_MAX as usize)),
            thread: Some(thread),
            commits,
            progress,
        })
    }

    /// Has `work` done and committed. Gives the work back with the answer, for what is left to do off the writer's thread.
    pub async fn write<W: Write>(&self, work: W) -> StoreResult<(W, W::Answer)> {
        let gone = || StoreError::Unavailable("the writer has stopped".into());
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        let kib = u32::try_from(work.bytes().div_ceil(1024)).unwrap_or(u32::MAX).min(QUEUED_KIB_MAX);
        let permit = match Arc::clone(&self.permits_kib).try_acquire_many_owned(kib) {
            Ok(permit) => permit,
            Err(_) => Arc::clone(&self.permits_kib).acquire_many_owned(kib).await.map_err(|_| gone())?,
        };
        let runtime = Handle::try_current().ok();
        queue.send(Box::new(Request { work, outcome: None, reply, runtime, _permit: permit })).await.map_err(|_| gone())?;
        answer.await.map_err(|_| StoreError::Unknown("the writer stopped before it answered".into()))?
    }

    /// How many transactions were committed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Which transactions are under way. The clock is read first: one that has no number yet takes its own time after that.
    pub fn watermark(&self, clock: &dyn Clock) -> Watermark {
        let at = clock.now();
        let next = self.progress.begun.load(Ordering::SeqCst) + 1;
        Watermark { at, open: self.progress.ended.load(Ordering::SeqCst) + 1, next }
    }

    /// Finishes what is queued and waits for the end.
    pub fn stop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the SQLite writer ended by a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A piece of work with a caller that waits for it.
struct Request<W: Write> {
    work: W,
    outcome: Option<W::Answer>,
    reply: oneshot::Sender<StoreResult<(W, W::Answer)>>,
    /// Where the caller waits.
    runtime: Option<Handle>,
    _permit: OwnedSemaphorePermit,
}

/// A request of any kind.
trait Queued: Send {
    fn name(&self) -> &'static str;
    fn rows(&self) -> usize;
    fn bytes(&self) -> usize;
    fn is_background(&self) -> bool;
    fn runtime(&self) -> Option<&Handle>;
    fn run(&mut self, connection: &Connection, tally: &mut Tally) -> Result<(), Failure>;
    /// Tells the caller; `committed` says what became of the transaction.
    fn answer(self: Box<Self>, committed: StoreResult<()>);
}

impl<W: Write> Queued for Request<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn rows(&self) -> usize {
        self.work.rows()
    }

    fn bytes(&self) -> usize {
        self.work.bytes()
    }

    fn is_background(&self) -> bool {
        self.work.is_background()
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    fn run(&mut self, connection: &Connection, tally: &mut Tally) -> Result<(), Failure> {
        self.outcome = None;
        self.outcome = Some(self.work.run(connection, tally)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: StoreResult<()>) {
        let Self { work, outcome, reply, .. } = *self;
        let answer = match (committed, outcome) {
            (Ok(()), Some(outcome)) => Ok((work, outcome)),
            (Ok(()), None) => Err(StoreError::Unavailable("the request was not run".into())),
            (Err(error), _) => Err(error),
        };
        // A caller that went away meanwhile needs no answer.
        drop(reply.send(answer));
    }
}

/// Requests that are committed, and whose callers do not know it yet. Whatever becomes of this, they are told.
struct Answers(Vec<Box<dyn Queued>>);

impl Answers {
    fn give(self) {
        let runtime = self.0.first().filter(|_| self.0.len() >= ANSWERS_BY_TASK_MIN).and_then(|first| first.runtime().cloned());
        if let Some(runtime) = runtime {
            // A runtime that is shutting down drops the task, and that is as good.
            drop(runtime.spawn(async move { drop(self) }));
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|request| request.answer(Ok(())));
    }
}

struct Worker {
    connection: Connection,
    /// The number in the header: see [`stamp`].
    commit: i32,
    /// Whether the next commit raises it.
    is_number_due: bool,
    last_write: LastWrite,
    log: LogKeeper,
    presence: Arc<Presence>,
    clock: Arc<dyn Clock>,
    tally: Tally,
    commits: Arc<AtomicU64>,
    progress: Arc<Progress>,
}

impl Worker {
    fn run(mut self, mut batches: Batches) {
        let mut batch = Vec::new();
        while let Some(rows) = batches.next(&mut batch) {
            metrics::batch(rows);
            let is_background = batch.iter().any(|request| request.is_background());
            self.process(&mut batch);
            if !self.presence.is_overwritten() {
                self.log.after_commit(&self.connection, rows, is_background);
            }
        }
        if self.presence.is_overwritten() {
            self.log.abandon(&self.connection);
        } else {
            self.log.finish(&self.connection);
        }
    }

    /// Failures are told to the callers, and logged by them.
    fn process(&mut self, batch: &mut Vec<Box<dyn Queued>>) {
        match self.commit(batch) {
            Ok(()) => Answers(std::mem::take(batch)).give(),
            Err(error) if batch.len() == 1 || !error.is_not_done() => {
                tracing::debug!(error = %error, requests = batch.len(), "a SQLite transaction failed");
                batch.drain(..).for_each(|request| request.answer(Err(error.clone())));
            }
            Err(_) => {
                for mut request in batch.drain(..) {
                    let committed = self.commit(std::slice::from_mut(&mut request));
                    if let Err(error) = &committed {
                        tracing::debug!(error = %error, request = request.name(), "a SQLite transaction failed");
                    }
                    request.answer(committed);
                }
            }
        }
    }

    /// All of `batch`, or nothing of it.
    fn commit(&mut self, batch: &mut [Box<dyn Queued>]) -> StoreResult<()> {
        self.progress.begun.fetch_add(1, Ordering::SeqCst);
        let done = self.run_transaction(batch);
        if done.is_err() && !self.connection.is_autocommit() {
            // Some errors end the transaction by themselves. Should this one fail, the next BEGIN does as well.
            if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                tracing::error!(error = %error, "a SQLite transaction could not be rolled back");
            }
        }
        self.progress.ended.fetch_add(1, Ordering::SeqCst);
        done
    }

    fn run_transaction(&mut self, batch: &mut [Box<dyn Queued>]) -> StoreResult<()> {
        self.tally.begin(self.clock.now());
        let modified = self.presence.check()?;
        self.is_number_due |= self.last_write.is_another(modified, self.clock.monotonic());
        self.is_number_due |= self.log.may_have_copied();
        self.execute("BEGIN IMMEDIATE").map_err(|error| Failure::from(error).0)?;
        let changes_before = self.connection.total_changes();
        for request in batch {
            // The connection survives an unwinding request: its statements are reset as they are dropped.
            match catch_unwind(AssertUnwindSafe(|| request.run(&self.connection, &mut self.tally))) {
                Ok(Ok(())) => {}
                Ok(Err(Failure(error))) => return Err(error),
                Err(panic) => {
                    let reason = reason(panic.as_ref());
                    tracing::error!(request = request.name(), reason, "a request to SQLite panicked");
                    // The same request would panic again: it must not be tried for ever.
                    return Err(StoreError::Corrupt(format!("{} panicked: {reason}", request.name()).into()));
                }
            }
        }
        self.tally.write(&self.connection).map_err(|error| Failure::from(error).0)?;
        // A commit that changes nothing is not in the log, and costs no sync.
        let is_numbered = self.is_number_due && self.connection.total_changes() != changes_before;
        if is_numbered {
            let commit = stamp::next(self.commit);
            stamp::write(&self.connection, commit).map_err(|error| Failure::from(error).0)?;
            self.presence.announce(commit);
        }
        self.execute("COMMIT").map_err(failure::classify_commit)?;
        if is_numbered {
            (self.commit, self.is_number_due) = (stamp::next(self.commit), false);
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        metrics::commit();
        Ok(())
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(|_| ())
    }
}

/// What a panic said, if it said anything.
pub fn reason(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<&str>().copied();
    said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
