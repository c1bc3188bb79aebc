mod mysql;
mod partitioned;
mod postgres;
mod sqlite;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;

use mysql::{Mysql, Server};
use partitioned::Partitioned;
use postgres::Postgres;
use sqlite::Sqlite;

/// A fresh, empty store, and the directory in which its service runs.
pub struct Backend {
    database: Box<dyn Database>,
    home: TempDir,
}

const NO_STATEMENTS: &str = "this database knows no statements: what needs them is shown on other stores";

/// What tests do to a database past the service: for what would take a service days, or what it never does. A database that knows no
/// statements has its name, its URL and its counts only.
///
/// A further database is an implementation of this, a constructor of [`Backend`] and a line in `on_each_store!` or `on_mariadb_too!`.
trait Database: Send + Sync {
    /// For printed measurements, and as `timer bench` names it.
    fn name(&self) -> &'static str;

    fn url(&self) -> &str;

    /// Where it is, if it is a file.
    fn file(&self) -> Option<PathBuf> {
        None
    }

    fn execute(&self, _statements: &str) {
        panic!("{NO_STATEMENTS}");
    }

    /// How many timers there are, and how many different keys they have. Only servers, which several nodes share, are asked.
    fn timers_and_keys(&self) -> (usize, usize) {
        panic!("several nodes do not share a file");
    }

    /// Writes a backup to this file while the service runs, as an operator does it.
    fn back_up(&self, _file: &Path) {
        panic!("{NO_STATEMENTS}");
    }

    /// Restores such a backup as a database of its own.
    fn restored(&self, _file: &Path) -> Box<dyn Database> {
        panic!("{NO_STATEMENTS}");
    }

    /// Everything that it keeps: where, and the bytes.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        panic!("{NO_STATEMENTS}");
    }

    /// Statements that copy a timer that the service has registered itself. Ids are as the service makes them: in the order of
    /// creation, and random at their end.
    fn copy_pending(&self, _copies: &Pending) -> String {
        panic!("{NO_STATEMENTS}");
    }

    /// Statements that copy a timer that the service has completed itself, with other ends. Ids are as above.
    fn copy_finished(&self, _copies: &Finished) -> String {
        panic!("{NO_STATEMENTS}");
    }

    /// Statements after the copying: the timer that finished last goes, which is the one that was copied, and statistics are as after
    /// days of running.
    fn forget_the_copied(&self) -> String {
        panic!("{NO_STATEMENTS}");
    }

    /// Statements that record a pending timer as completed although it is still due.
    fn complete_what_is_due(&self, _id: &str, _at: i64) -> String {
        panic!("{NO_STATEMENTS}");
    }

    /// Statements after which this timer cannot be taken from the table of due timers: `this row is damaged`.
    fn damage(&self, _id: &str) -> String {
        panic!("{NO_STATEMENTS}");
    }
}

/// Pending timers that no client has to register one by one.
pub struct Pending<'a> {
    pub count: usize,
    pub created_at: i64,
    /// When the n-th is due, in microseconds, as every database understands it.
    pub due_at: &'a str,
}

/// How many timers there are, when the first of them finished, and how.
pub struct Finished {
    pub count: usize,
    pub first_at: i64,
    pub status: &'static str,
}

/// What a copy has in common with the timer it was copied from, besides its times.
const COPIED: &str =
    "namespace, key, callback_type, delivery, revision, fingerprint, correlation_id, retry_policy, metadata, callback_config";

/// What removes the timer that finished last.
const FORGET_THE_COPIED: &str =
    "DELETE FROM outcome WHERE finished_at = (SELECT latest.at FROM (SELECT max(finished_at) AS at FROM outcome) AS latest);
     DELETE FROM definition WHERE NOT EXISTS (SELECT 1 FROM outcome WHERE outcome.id = definition.id);";

/// The tests of a function, one for each database: the name of the test, and the constructor below.
macro_rules! on_each_store {
    ($name:ident, $($tier:tt)*) => {
        $crate::rig::on_store!($name, on_sqlite, sqlite, $($tier)*);
        $crate::rig::on_store!($name, on_postgres, postgres, $($tier)*);
    };
}
pub(crate) use on_each_store;

/// The same on MariaDB as well, in its tier, for the promises that rest on a store most. Conformance holds it to all else, in less time.
macro_rules! on_mariadb_too {
    ($name:ident, $($tier:tt)*) => {
        $crate::rig::on_each_store!($name,);
        $crate::rig::on_store!($name, on_mariadb, mariadb, $($tier)*);
    };
}
pub(crate) use on_mariadb_too;

impl Backend {
    pub fn sqlite() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        Self { database: Box::new(Sqlite::in_directory(home.path())), home }
    }

    /// A file in a directory of the test. Its service runs elsewhere.
    pub fn sqlite_in(directory: &Path) -> Self {
        Self::on(Sqlite::in_directory(directory))
    }

    pub fn postgres() -> Self {
        Self::on(Postgres::with_tables())
    }

    /// A database of a server that the test has for itself.
    pub fn postgres_at(url: String) -> Self {
        Self::on(Postgres::at(url))
    }

    pub fn mariadb() -> Self {
        Self::on(Mysql::on(Server::shared()))
    }

    /// As [`Self::mariadb`], where a server might be missing.
    pub fn new_mariadb() -> Option<Self> {
        Some(Self::mariadb())
    }

    /// A database of the shared server; `None`, and a line that says so, where there is none.
    pub fn mysql() -> Option<Self> {
        let server = throwaway::mysql();
        told_if_missing(server.is_none(), "MySQL", "scripts/setup.sh");
        server.map(|server| Self::on(Mysql::on(Server::Shared(server))))
    }

    /// A database of a server that the test has for itself: MariaDB, or what speaks as it does.
    pub fn mysql_on(server: &Arc<throwaway::Mysql>) -> Self {
        Self::on(Mysql::on(Server::Own(Arc::clone(server))))
    }

    /// A database of the shared server; `None`, and a line that says so, where there is none.
    pub fn mongodb() -> Option<Self> {
        let server = throwaway::mongodb();
        told_if_missing(server.is_none(), "MongoDB", "scripts/mongodb.sh --fetch");
        server.map(|server| Self::on(Partitioned::mongodb(server.create_database())))
    }

    /// A table of the shared server; `None`, and a line that says so, where there is none.
    #[cfg(feature = "dynamodb")]
    pub fn dynamodb() -> Option<Self> {
        let server = throwaway::dynamodb();
        told_if_missing(server.is_none(), "DynamoDB Local", "scripts/dynamodb.sh --fetch");
        server.map(|server| Self::on(Partitioned::dynamodb(server.new_table())))
    }

    /// A keyspace of the shared server; `None`, and a line that says so, where there is none.
    pub fn cassandra() -> Option<Self> {
        throwaway::cassandra().map(|server| Self::on(Partitioned::cassandra(&server.new_keyspace(), None)))
    }

    /// A keyspace of a cluster that the test has for itself.
    pub fn cassandra_on(server: &Arc<throwaway::Cassandra>) -> Self {
        Self::on(Partitioned::cassandra(&server.new_keyspace(), Some(Arc::clone(server))))
    }

    fn on(database: impl Database + 'static) -> Self {
        Self { database: Box::new(database), home: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn url(&self) -> &str {
        self.database.url()
    }

    pub fn name(&self) -> &'static str {
        self.database.name()
    }

    /// Where the database is, if it is a file.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        self.database.file()
    }

    /// Runs statements that every database understands.
    pub fn execute(&self, statements: &str) {
        self.database.execute(statements);
    }

    /// Writes a backup to this file while the service runs, as an operator does it.
    pub fn back_up(&self, file: &Path) {
        self.database.back_up(file);
    }

    /// Such a backup, restored as a database of its own.
    pub fn restored(&self, file: &Path) -> Self {
        Self { database: self.database.restored(file), home: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn timers_and_keys(&self) -> (usize, usize) {
        self.database.timers_and_keys()
    }

    pub fn contents(&self) -> Vec<(String, Vec<u8>)> {
        self.database.contents()
    }

    pub fn add_pending(&self, copies: &Pending) {
        self.database.execute(&self.database.copy_pending(copies));
    }

    pub fn add_finished(&self, copies: &[Finished]) {
        for copies in copies {
            self.database.execute(&self.database.copy_finished(copies));
        }
        self.database.execute(&self.database.forget_the_copied());
    }

    pub fn complete_what_is_due(&self, id: &str, at: i64) {
        self.database.execute(&self.database.complete_what_is_due(id, at));
    }

    pub fn damage(&self, id: &str) {
        self.database.execute(&self.database.damage(id));
    }
}

fn told_if_missing(is_missing: bool, server: &str, script: &str) {
    if is_missing {
        println!("left out: there is no {server} for tests; {script} gets one");
    }
}

/// Two numbers that a client of a server printed.
fn two_numbers(printed: &str, between: char) -> (usize, usize) {
    let (first, second) = printed.split_once(between).expect("two columns");
    (first.parse().expect("a number"), second.parse().expect("a number"))
}
