//! Keeps the write-ahead log short without making the writer wait.
//!
//! ```text
//!   writer ── log is long ──▶ checkpoint thread ── copies most of it, while the writer goes on
//!     ▲                                │
//!     └────────── only a tail is left ─┘   the writer copies that, and the log starts over
//! ```
//!
//! A log can only start over when all of it has been copied and nothing is added to it, so under constant load the writer must copy
//! the last pages itself. Those are few.
//!
//! What operations change lies all over the file. Copied at once, thousands of such pages would keep the disk from the commits of the writer
//! for as long as that takes, so they are copied after each commit of the background, a few at a time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use rusqlite::{Connection, config::DbConfig};

use crate::{connection::BUSY_TIMEOUT, metrics};

/// How long the log may become, in pages of 4 KiB.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The number of pages not yet in the database from which the thread is asked to copy them.
    backlog_pages: i64,
    /// From here the writer lends a hand, so that the log can start over.
    log_pages: i64,
    /// From here the writer waits for readers: one of them must have been reading for very long.
    log_pages_max: i64,
}

impl Default for Limits {
    /// 8, 64 and 256 MiB.
    fn default() -> Self {
        Self { backlog_pages: 2 * 1024, log_pages: 16 * 1024, log_pages_max: 64 * 1024 }
    }
}

/// What a look at the log costs is nothing beside this many rows.
const LOOK_EVERY_ROWS: usize = 256;
/// Each pass leaves a shorter tail than the one before; after these it hardly shrinks any more.
const PASSES_MAX: u32 = 4;
/// How long the writer waits for readers. A short read ends within it; a backup takes longer than any wait would be worth.
const RESTART_TIMEOUT: Duration = Duration::from_millis(20);

/// The log as SQLite describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    pub pages: i64,
    /// How many of them are in the database already.
    pub copied: i64,
}

/// What the writer does about the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Leave,
    /// The thread copies, in at most this number of passes.
    Ask(u32),
    /// The thread has copied all but a tail: the writer copies that.
    Finish,
    /// The writer waits for readers, then starts the log over.
    Restart,
}

/// `restart_pages` is the length from which the log is to start over: see [`next_restart`].
const fn decide(limits: &Limits, restart_pages: i64, log: Log, only_a_tail_is_left: bool, is_background: bool) -> Step {
    if log.pages >= restart_pages {
        Step::Restart
    } else if log.pages >= limits.log_pages && only_a_tail_is_left {
        Step::Finish
    } else if log.pages - log.copied >= limits.backlog_pages {
        Step::Ask(PASSES_MAX)
    } else if is_background && log.pages > log.copied {
        Step::Ask(1)
    } else {
        Step::Leave
    }
}

/// From how many pages on the writer waits for readers again. One that reads for long, such as a backup, would otherwise make it wait
/// after every commit.
const fn next_restart(limits: &Limits, log: Log, readers_were_in_the_way: bool) -> i64 {
    if readers_were_in_the_way { log.pages.saturating_add(limits.log_pages) } else { limits.log_pages_max }
}

/// The writer's side.
pub struct LogKeeper {
    limits: Limits,
    ask: SyncSender<u32>,
    /// How many checkpoints the thread was asked for and has not finished.
    asked: Arc<AtomicUsize>,
    only_a_tail_is_left: Arc<AtomicBool>,
    /// Held by the thread that copies: SQLite refuses a second checkpoint without letting it wait.
    copying: Arc<Mutex<()>>,
    rows_since_look: usize,
    restart_pages: i64,
    /// Whether this process has copied anything since the last transaction.
    has_copied: bool,
    is_abandoned: Arc<AtomicBool>,
}

impl LogKeeper {
    /// Whether a checkpoint of this process may have changed the file since this was last asked. Called before each transaction.
    pub fn may_have_copied(&mut self) -> bool {
        let is_copying = self.asked.load(Ordering::SeqCst) > 0;
        // Asked once more after the end: a checkpoint that is over by now may have copied up to the last commit.
        std::mem::replace(&mut self.has_copied, is_copying) || is_copying
    }

    /// Called between transactions, with whether the last one was of the background.
    pub fn after_commit(&mut self, connection: &Connection, rows: usize, is_background: bool) {
        // A transaction writes a few pages however few its rows are.
        self.rows_since_look = self.rows_since_look.saturating_add(rows.max(8));
        let is_time_to_look = self.rows_since_look >= LOOK_EVERY_ROWS || is_background;
        if !is_time_to_look && !self.only_a_tail_is_left.load(Ordering::Relaxed) {
            return;
        }
        self.rows_since_look = 0;
        let Some(log) = run(connection, "PRAGMA wal_checkpoint(NOOP)") else { return };
        metrics::log_pages(log.pages);
        if log.pages < self.limits.log_pages_max {
            self.restart_pages = self.limits.log_pages_max;
        }
        let only_a_tail_is_left = self.only_a_tail_is_left.swap(false, Ordering::Relaxed);
        match decide(&self.limits, self.restart_pages, log, only_a_tail_is_left, is_background) {
            Step::Leave => {}
            Step::Ask(passes_max) => self.ask(passes_max),
            Step::Finish => {
                self.has_copied = true;
                run(connection, "PRAGMA wal_checkpoint(PASSIVE)");
            }
            Step::Restart => {
                self.has_copied = true;
                let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
                self.restart_pages = next_restart(&self.limits, log, !restart(connection));
            }
        }
    }

    fn ask(&mut self, passes_max: u32) {
        self.has_copied = true;
        self.asked.fetch_add(1, Ordering::SeqCst);
        // When the thread has been asked already, that is enough.
        if self.ask.try_send(passes_max).is_err() {
            self.asked.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Brings everything into the database, so that the next start has nothing to recover.
    pub fn finish(&self, connection: &Connection) {
        start_over(connection);
    }

    /// Leaves the log as it is: the database is not the one that it belongs to.
    pub fn abandon(&self, connection: &Connection) {
        self.is_abandoned.store(true, Ordering::SeqCst);
        keep_log_on_close(connection);
    }
}

/// Otherwise the last connection copies the log into the database as it is closed.
fn keep_log_on_close(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::error!(error = %error, "the SQLite log cannot be kept");
    }
}

/// Brings the whole log into the database and empties it.
pub fn start_over(connection: &Connection) {
    run(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/// The thread's side. It ends when the [`LogKeeper`] does.
pub fn start(connection: Connection, limits: Limits) -> std::io::Result<(LogKeeper, JoinHandle<()>)> {
    let (ask, requests) = sync_channel(1);
    let asked = Arc::new(AtomicUsize::new(0));
    let unfinished = Arc::clone(&asked);
    let only_a_tail_is_left = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&only_a_tail_is_left);
    let copying = Arc::new(Mutex::new(()));
    let mine = Arc::clone(&copying);
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let at_the_end = Arc::clone(&is_abandoned);
    let thread = std::thread::Builder::new().name("sqlite-checkpoint".to_owned()).spawn(move || {
        while let Some(handled) = checkpoint_when_asked(&connection, &requests, &tell, &mine) {
            unfinished.fetch_sub(handled, Ordering::SeqCst);
        }
        if at_the_end.load(Ordering::SeqCst) {
            keep_log_on_close(&connection);
        }
    })?;
    let restart_pages = limits.log_pages_max;
    let keeper = LogKeeper {
        limits,
        ask,
        asked,
        only_a_tail_is_left,
        copying,
        rows_since_look: 0,
        restart_pages,
        has_copied: true,
        is_abandoned,
    };
    Ok((keeper, thread))
}

/// Says how many requests that was, or `None` at the end.
fn checkpoint_when_asked(
    connection: &Connection,
    requests: &Receiver<u32>,
    only_a_tail_is_left: &AtomicBool,
    copying: &Mutex<()>,
) -> Option<usize> {
    let passes_max = requests.recv().ok()?;
    for _ in 0..passes_max {
        let _copying = copying.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = run(connection, "PRAGMA wal_checkpoint(PASSIVE)") else { break };
        metrics::checkpoint();
        if log.copied >= log.pages {
            break;
        }
    }
    // What was asked meanwhile is done. Were it done again now, it would be in the way of the writer's last part.
    let meanwhile = requests.try_iter().count();
    only_a_tail_is_left.store(true, Ordering::Relaxed);
    Some(1 + meanwhile)
}

/// `false` if readers were in the way.
fn restart(connection: &Connection) -> bool {
    let is_busy = connection
        .busy_timeout(RESTART_TIMEOUT)
        .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0)));
    let restored = connection.busy_timeout(BUSY_TIMEOUT);
    match restored.and(is_busy) {
        Ok(is_busy) => !is_busy,
        Err(error) => {
            tracing::warn!(error = %error, "the SQLite log could not start over");
            false
        }
    }
}

/// A failure is logged and forgotten: the log stays as it is, and the next checkpoint does the work.
fn run(connection: &Connection, pragma: &str) -> Option<Log> {
    let answer = connection
        .prepare_cached(pragma)
        .and_then(|mut statement| statement.query_row([], |row| Ok(Log { pages: row.get(1)?, copied: row.get(2)? })));
    answer.inspect_err(|error| tracing::warn!(error = %error, pragma, "a SQLite checkpoint failed")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{self, Role};

    #[test]
    fn the_writer_helps_only_when_the_log_is_long_and_little_is_left() {
        let limits = Limits { backlog_pages: 10, log_pages: 100, log_pages_max: 1000 };
        let table = [
            (0, 0, false, Step::Leave),
            (9, 0, true, Step::Leave),
            (10, 0, false, Step::Ask(PASSES_MAX)),
            (100, 0, false, Step::Ask(PASSES_MAX)),
            (100, 100, false, Step::Leave),
            (100, 99, true, Step::Finish),
            (1000, 1000, false, Step::Restart),
        ];
        for (pages, copied, only_a_tail_is_left, step) in table {
            let log = Log { pages, copied };
            assert_eq!(decide(&limits, 1000, log, only_a_tail_is_left, false), step, "{log:?} {only_a_tail_is_left}");
        }
    }

    #[test]
    fn what_the_background_writes_is_copied_at_once() {
        let limits = Limits { backlog_pages: 10, log_pages: 100, log_pages_max: 1000 };
        let table = [(5, 5, Step::Leave), (6, 5, Step::Ask(1)), (10, 0, Step::Ask(PASSES_MAX)), (1000, 999, Step::Restart)];
        for (pages, copied, step) in table {
            let log = Log { pages, copied };
            assert_eq!(decide(&limits, 1000, log, false, true), step, "{log:?}");
        }
    }

    #[test]
    fn a_reader_that_was_waited_for_in_vain_is_waited_for_again_only_when_the_log_has_grown() {
        let limits = Limits { backlog_pages: 10, log_pages: 100, log_pages_max: 1000 };
        let log = |pages| Log { pages, copied: pages };
        let restart_pages = next_restart(&limits, log(1020), true);
        for (pages, step) in [(1021, Step::Leave), (1119, Step::Leave), (1120, Step::Restart)] {
            assert_eq!(decide(&limits, restart_pages, log(pages), false, false), step, "{pages}");
        }
        assert_eq!(decide(&limits, restart_pages, log(1021), true, false), Step::Finish);
        assert_eq!(next_restart(&limits, log(1120), false), 1000);
    }

    #[test]
    fn the_file_may_have_changed_beside_a_checkpoint_and_before_the_first_commit_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        std::fs::write(&path, "").unwrap();
        let writer = connection::open(&path, Role::Writer).unwrap();
        writer.execute_batch("CREATE TABLE t (content BLOB); INSERT INTO t VALUES (zeroblob(4096 * 10))").unwrap();
        let limits = Limits { backlog_pages: 1_000, log_pages: 1, log_pages_max: 2_000 };
        let (mut keeper, thread) = start(connection::open(&path, Role::Checkpointer).unwrap(), limits).unwrap();
        assert_eq!([(); 3].map(|()| keeper.may_have_copied()), [true, false, false], "the start copies");

        // The thread cannot end its checkpoint while this is held.
        let (copying, asked) = (Arc::clone(&keeper.copying), Arc::clone(&keeper.asked));
        let held = copying.lock().unwrap();
        keeper.ask(PASSES_MAX);
        assert_eq!([(); 2].map(|()| keeper.may_have_copied()), [true, true], "a checkpoint is under way");
        drop(held);
        while asked.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        assert_eq!([(); 2].map(|()| keeper.may_have_copied()), [true, false], "it has ended");

        keeper.only_a_tail_is_left.store(true, Ordering::Relaxed);
        keeper.after_commit(&writer, LOOK_EVERY_ROWS, false);
        assert_eq!([(); 2].map(|()| keeper.may_have_copied()), [true, false], "the writer has copied the tail");
        drop(keeper);
        thread.join().unwrap();
    }

    #[test]
    fn the_writer_does_not_wait_for_a_long_read_after_every_commit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        std::fs::write(&path, "").unwrap();
        let writer = connection::open(&path, Role::Writer).unwrap();
        writer.execute_batch("CREATE TABLE t (content BLOB)").unwrap();
        let limits = Limits { backlog_pages: 10, log_pages: 100, log_pages_max: 200 };
        let (mut keeper, thread) = start(connection::open(&path, Role::Checkpointer).unwrap(), limits).unwrap();
        let reader = connection::open(&path, Role::Reader).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        let mut write = || {
            writer.execute("INSERT INTO t VALUES (zeroblob(4096 * 10))", []).unwrap();
            keeper.after_commit(&writer, LOOK_EVERY_ROWS, false);
            (keeper.restart_pages, run(&writer, "PRAGMA wal_checkpoint(NOOP)").unwrap().pages)
        };

        let mut restarts: Vec<i64> = (0..60).map(|_| write().0).collect();
        restarts.dedup();
        assert!((3..8).contains(&restarts.len()), "{restarts:?}");

        reader.execute_batch("COMMIT").unwrap();
        let shortest = (0..20).map(|_| write().1).min().unwrap();
        assert!(shortest < limits.log_pages, "the log is {shortest} pages long and does not start over");
        assert_eq!(write().0, limits.log_pages_max);
        drop(keeper);
        thread.join().unwrap();
    }

    #[test]
    fn the_log_stays_short_however_much_is_written() {
        const PAGES_A_COMMIT: i64 = 20;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        std::fs::write(&path, "").unwrap();
        let writer = connection::open(&path, Role::Writer).unwrap();
        writer.execute_batch("CREATE TABLE t (content BLOB)").unwrap();
        let limits = Limits { backlog_pages: 100, log_pages: 400, log_pages_max: 2000 };
        let (mut keeper, thread) = start(connection::open(&path, Role::Checkpointer).unwrap(), limits).unwrap();

        let mut longest = 0;
        for _ in 0..1000 {
            writer.execute("INSERT INTO t VALUES (zeroblob(4096 * ?1))", [PAGES_A_COMMIT - 4]).unwrap();
            keeper.after_commit(&writer, LOOK_EVERY_ROWS, false);
            longest = longest.max(run(&writer, "PRAGMA wal_checkpoint(NOOP)").unwrap().pages);
        }

        assert!(longest <= limits.log_pages_max + PAGES_A_COMMIT, "the log grew to {longest} pages");
        drop(keeper);
        thread.join().unwrap();
    }
}
