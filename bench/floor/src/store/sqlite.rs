//! SQLite: one thread that writes all that waits in one transaction.

use std::{sync::mpsc, thread};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::{
    Result, clock,
    store::give_up,
    timer::{Due, Timer},
};

/// More than there are sessions, each of which waits for its work, so that no sender is ever blocked.
const WORK_MAX: usize = 64;
const CACHE_KIB: i64 = 64 * 1_024;
/// 64 MiB of log between two checkpoints.
const CHECKPOINT_PAGES: i64 = 16_384;

#[derive(Debug)]
pub enum Work {
    Create(Vec<Timer>),
    Claim(Vec<Due>),
    Complete(Vec<Due>),
    Clear,
}

/// Work, with the task that waits for its commit. Only claims have timers as their answer.
type Asked = (Work, oneshot::Sender<Vec<Timer>>);

#[derive(Debug, Clone)]
pub struct Writer(mpsc::SyncSender<Asked>);

impl Writer {
    /// Returns when `work` is on disk.
    pub async fn write(&self, work: Work) -> Vec<Timer> {
        let (done, written) = oneshot::channel();
        // The thread ends with the process only.
        let _ = self.0.send((work, done));
        written.await.unwrap_or_default()
    }
}

/// Starts the thread that writes, and returns what is pending.
pub fn open(path: &str) -> Result<(Writer, Vec<Due>)> {
    let mut connection = Connection::open(path)?;
    // Another process could only do damage.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(format!("{path} allows no write-ahead log (mode {mode})").into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.execute_batch(include_str!("../../sql/sqlite_schema.sql"))?;
    let pending = connection
        .prepare("SELECT due_at, id FROM due")?
        .query_map([], |row| Ok(Due { at: row.get("due_at")?, id: row.get("id")? }))?
        .collect::<rusqlite::Result<_>>()?;

    let (sender, asked) = mpsc::sync_channel(WORK_MAX);
    thread::Builder::new().name("writer".to_owned()).spawn(move || {
        while let Ok(first) = asked.recv() {
            let batch = std::iter::once(first).chain(asked.try_iter().take(WORK_MAX)).collect();
            write(&mut connection, batch).unwrap_or_else(|error| give_up(&error));
        }
    })?;
    Ok((Writer(sender), pending))
}

fn write(connection: &mut Connection, batch: Vec<Asked>) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut answers = Vec::new();
    for (work, done) in batch {
        let timers = match work {
            Work::Create(timers) => create(&transaction, &timers).map(|()| Vec::new()),
            Work::Claim(due) => claim(&transaction, &due),
            Work::Complete(due) => complete(&transaction, &due).map(|()| Vec::new()),
            Work::Clear => transaction.execute_batch("DELETE FROM due; DELETE FROM payload").map(|()| Vec::new()),
        };
        answers.push((done, timers?));
    }
    transaction.commit()?;
    for (done, timers) in answers {
        // A task that has gone does not wait.
        let _ = done.send(timers);
    }
    Ok(())
}

fn create(transaction: &Transaction<'_>, timers: &[Timer]) -> rusqlite::Result<()> {
    let mut narrow = transaction.prepare_cached("INSERT INTO due (minute, id, due_at) VALUES (?1, ?2, ?3)")?;
    let mut wide = transaction.prepare_cached("INSERT INTO payload (id, url, body) VALUES (?1, ?2, ?3)")?;
    for Timer { due, url, body } in timers {
        narrow.execute(params![due.minute(), due.id, due.at])?;
        wide.execute(params![due.id, url, body])?;
    }
    Ok(())
}

fn claim(transaction: &Transaction<'_>, due: &[Due]) -> rusqlite::Result<Vec<Timer>> {
    let mut narrow = transaction.prepare_cached("UPDATE due SET claimed_at = ?3 WHERE minute = ?1 AND id = ?2")?;
    let mut wide = transaction.prepare_cached("SELECT url, body FROM payload WHERE id = ?1")?;
    let now = clock::now_micros();
    let mut timers = Vec::with_capacity(due.len());
    for due in due {
        if narrow.execute(params![due.minute(), due.id, now])? == 1 {
            timers.push(wide.query_row([due.id], |row| Ok(Timer { due: *due, url: row.get("url")?, body: row.get("body")? }))?);
        }
    }
    Ok(timers)
}

fn complete(transaction: &Transaction<'_>, due: &[Due]) -> rusqlite::Result<()> {
    let mut narrow = transaction.prepare_cached("DELETE FROM due WHERE minute = ?1 AND id = ?2")?;
    let mut wide = transaction.prepare_cached("DELETE FROM payload WHERE id = ?1")?;
    for due in due {
        narrow.execute(params![due.minute(), due.id])?;
        wide.execute([due.id])?;
    }
    Ok(())
}
