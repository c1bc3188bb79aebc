//! Telling the other processes of timers that are due soon, through a small table in the server's memory.
//!
//! ```text
//!   nudge ──▶ nudges' bulkhead: rows ──▶ MySQL ◀── a session that looks for new rows, in every process ──▶ nudged
//! ```
//!
//! Best effort: what is told while no node looks is lost, and so is all of it at a restart of the server.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use domain::Cause;
use serde::Serialize;
use sqlx::{Row as _, mysql::MySqlConnectOptions};
use store::{DueEntry, StoreError, StoreResult};
use store_sql::{Call, sql};
use tokio::{
    sync::{Mutex, mpsc},
    time::{sleep, timeout},
};

use crate::{
    connector::{Connector, connect},
    due::entry,
    failure::{Failure, Step, Verdict, describe},
    rows::{Hex, destination_column},
    session::Session,
};

pub(crate) const NUDGE: &str = sql!("sql/nudge.sql");
pub(crate) const NUDGED: &str = sql!("sql/nudged.sql");
pub(crate) const LAST_NUDGE: &str = sql!("sql/last_nudge.sql");
pub(crate) const FORGET_NUDGES: &str = sql!("sql/forget_nudges.sql");

/// How often a process looks for what is new. A look that finds nothing is one step along an index in memory.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How many rows a look takes.
const ROWS_MAX: i64 = 4_096;
/// The number of rows that are kept; older ones are forgotten. A process that is further behind has missed them.
const ROWS_KEPT: u64 = 50_000;
/// How many rows are told between two times that old ones are forgotten.
const FORGET_INTERVAL: u64 = 10_000;

/// How many looks that found something may wait for a caller.
const HEARD_MAX: usize = 64;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Tells one process from another: each also sees what it wrote itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender(i64);

impl Sender {
    pub fn random() -> Self {
        Self(RandomState::new().build_hasher().finish().cast_signed())
    }
}

#[derive(Serialize)]
struct Line {
    at: i64,
    id: Hex,
    destination: i64,
}

pub struct Nudge {
    sender: Sender,
    lines: Vec<Line>,
}

impl Nudge {
    pub fn new(sender: Sender, entries: &[DueEntry]) -> Self {
        let line = |entry: &DueEntry| Line {
            at: entry.at.as_micros(),
            id: Hex::from(entry.id),
            destination: destination_column(entry.destination),
        };
        Self { sender, lines: entries.iter().map(line).collect() }
    }
}

impl Call<Connector> for Nudge {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let query = sqlx::query(NUDGE).bind(self.sender.0).bind(session.given(&self.lines).await?);
        match query.execute(&mut *session).await.or_unknown() {
            Ok(told) => {
                let (first, lines) = (told.last_insert_id(), self.lines.len() as u64);
                if first / FORGET_INTERVAL != (first + lines) / FORGET_INTERVAL {
                    forget(session, first.saturating_sub(ROWS_KEPT)).await?;
                }
                Ok(())
            }
            // The server's limit for the table is below ours. What is in it has been seen, or is lost.
            Err(failure) if failure.verdict == Verdict::Full => forget(session, u64::MAX >> 1).await,
            Err(failure) => Err(failure),
        }
    }
}

async fn forget(session: &mut Session, up_to: u64) -> Result<(), Failure> {
    sqlx::query(FORGET_NUDGES).bind(up_to).execute(session).await.or_unknown()?;
    Ok(())
}

/// What other processes tell. A task with a session of its own looks for it, from the first time a caller waits.
#[derive(Debug)]
pub struct Inbox {
    options: MySqlConnectOptions,
    heard: Mutex<Option<mpsc::Receiver<StoreResult<Vec<DueEntry>>>>>,
}

impl Inbox {
    /// Opens no session yet.
    pub fn new(options: &MySqlConnectOptions) -> Self {
        Self { options: options.clone(), heard: Mutex::new(None) }
    }

    /// What another process than `own` tells next. A caller that stops waiting loses nothing.
    pub async fn next(&self, own: Sender) -> StoreResult<Vec<DueEntry>> {
        let mut heard = self.heard.lock().await;
        let inbox = heard.get_or_insert_with(|| {
            let (told, inbox) = mpsc::channel(HEARD_MAX);
            tokio::spawn(look_for_nudges(self.options.clone(), own, told));
            inbox
        });
        let next =
            inbox.recv().await.unwrap_or_else(|| Err(StoreError::Unavailable("the task that looked for nudges ended".into())));
        if next.is_err() {
            // The next caller begins anew.
            *heard = None;
        }
        next
    }

    pub async fn close(&self) {
        // The task ends with its next look.
        if let Ok(mut heard) = self.heard.try_lock() {
            *heard = None;
        }
    }
}

/// Looks for nudges until the first error, or until no receiver is left.
async fn look_for_nudges(options: MySqlConnectOptions, own: Sender, told: mpsc::Sender<StoreResult<Vec<DueEntry>>>) {
    let begun = timeout(CONNECT_TIMEOUT, Looking::begin(&options)).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    let mut looking = match begun {
        Ok(looking) => looking,
        Err(error) => return drop(told.send(Err(unavailable(error))).await),
    };
    while !told.is_closed() {
        match timeout(ANSWER_TIMEOUT, looking.look(own)).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(entries) if entries.is_empty() => sleep(LOOK_INTERVAL).await,
            // A caller that takes none out in time misses some.
            Ok(entries) => drop(told.try_send(Ok(entries))),
            Err(error) => return drop(told.send(Err(unavailable(error))).await),
        }
    }
    looking.session.close().await;
}

struct Looking {
    session: Session,
    /// The number of the last row that was seen.
    last: i64,
}

impl Looking {
    async fn begin(options: &MySqlConnectOptions) -> Result<Self, sqlx::Error> {
        let mut session = connect(options, LOCK_TIMEOUT).await?;
        let last = sqlx::query_scalar(LAST_NUDGE).fetch_one(&mut session).await?;
        Ok(Self { session, last })
    }

    async fn look(&mut self, own: Sender) -> Result<Vec<DueEntry>, sqlx::Error> {
        let rows = sqlx::query(NUDGED).bind(self.last).bind(ROWS_MAX).fetch_all(&mut self.session).await?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            self.last = row.try_get("n")?;
            if row.try_get::<i64, _>("sender")? != own.0 {
                entries.push(entry(row)?);
            }
        }
        Ok(entries)
    }
}

fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(Cause::new(format!("nudges cannot be received: {}", describe(&error)), error))
}
