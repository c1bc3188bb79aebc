//! Reading, on connections and threads of its own: a reader sees what is committed and never waits for the writer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use rusqlite::{Connection, InterruptHandle};
use store::{StoreError, StoreResult};
use tokio::sync::{mpsc, oneshot};

use crate::{
    connection::{self, Role},
    failure::Failure,
    writer::reason,
};

const QUEUED_READS_MAX: usize = 256;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// Some threads, each with a read-only connection, and the queue before them.
pub struct Readers {
    queue: Option<mpsc::Sender<Job>>,
    threads: Vec<(InterruptHandle, JoinHandle<()>)>,
}

/// Why readers could not be started.
#[derive(Debug)]
pub enum StartError {
    Sqlite(rusqlite::Error),
    Thread(std::io::Error),
}

impl Readers {
    pub fn start(path: &Path, name: &str, count: usize) -> Result<Self, StartError> {
        let (sender, receiver) = mpsc::channel::<Job>(QUEUED_READS_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut readers = Self { queue: Some(sender), threads: Vec::with_capacity(count) };
        for number in 0..count {
            let connection = connection::open(path, Role::Reader).map_err(StartError::Sqlite)?;
            let interrupt = connection.get_interrupt_handle();
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new()
                .name(format!("sqlite-{name}-{number}"))
                .spawn(move || serve(&connection, &receiver))
                .map_err(StartError::Thread)?;
            readers.threads.push((interrupt, thread));
        }
        Ok(readers)
    }

    /// Runs `query` on one of the connections. Each query is a transaction by itself.
    pub async fn read<T, F>(&self, query: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let gone = || StoreError::Unavailable("the readers have stopped".into());
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The caller is gone: a long scan would be for nothing.
            if reply.is_closed() {
                return;
            }
            let result = catch_unwind(AssertUnwindSafe(|| query(connection))).unwrap_or_else(|panic| {
                let reason = reason(panic.as_ref());
                tracing::error!(reason, "a read from SQLite panicked");
                Err(Failure(StoreError::Unavailable(format!("a read panicked: {reason}").into())))
            });
            drop(reply.send(result));
        });
        self.queue.as_ref().ok_or_else(gone)?.send(job).await.map_err(|_| gone())?;
        // Nothing is changed by reading, so a lost answer is no unknown outcome.
        answer.await.map_err(|_| gone())?.map_err(|Failure(error)| error)
    }

    pub fn stop(&mut self) {
        self.queue = None;
        for (interrupt, _) in &self.threads {
            interrupt.interrupt();
        }
        for (_, thread) in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a SQLite reader ended by a panic");
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(connection: &Connection, queue: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // One idle thread waits for the next job, the others wait for its place.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        match job {
            Some(job) => job(connection),
            None => return,
        }
    }
}
