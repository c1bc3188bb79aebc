//! One PostgreSQL cluster in a temporary directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::binaries::Binaries;
use crate::home;
use crate::keeper::{self, QUIT_WITH_KEEPER};
use crate::port::free_port;
use crate::server_user::{ServerUser, without_postgres_settings};

const SUPERUSER: &str = "timer";
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The limit of polls, about a minute: crash recovery on a busy machine takes seconds, and a hang should still fail the test.
const POLLS_MAX: u32 = 3_000;
const LAUNCH_ATTEMPTS_MAX: u32 = 5;

/// A server of its own, from `Postgres::start()` to `drop`.
#[derive(Debug)]
pub struct Postgres {
    binaries: Binaries,
    user: ServerUser,
    home: TempDir,
    port: u16,
    server: Mutex<Option<Child>>,
    databases_made: AtomicU32,
}

impl Postgres {
    /// Sets up a new, empty cluster and starts its server; returns once it takes connections.
    pub fn start() -> Self {
        let home = home::make("postgres");
        let user = ServerUser::choose();
        user.give(home.path());
        let mut postgres = Self {
            binaries: Binaries::find(),
            user,
            home,
            port: free_port(),
            server: Mutex::new(None),
            databases_made: AtomicU32::new(0),
        };
        postgres.initialise();
        let child = (0..LAUNCH_ATTEMPTS_MAX)
            .find_map(|_| {
                // Another process can take a port between finding it and listening on it; then another port will do.
                postgres.launch().or_else(|| {
                    postgres.port = free_port();
                    None
                })
            })
            .expect("PostgreSQL found every port taken that was free a moment before");
        *postgres.server() = Some(child);
        postgres
    }

    /// The URL of `database`. Every user of this machine may log in without a password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database and returns its URL.
    pub fn create_database(&self) -> String {
        // A template with a connection cannot be copied, and template0 accepts no connections.
        self.copy("template0")
    }

    /// Creates a database with all that another one of this server has, and returns its URL. The other one must have no connections.
    pub fn copy_database(&self, url: &str) -> String {
        let (_, template) = url.rsplit_once('/').expect("the URL of a database ends with its name");
        self.copy(template)
    }

    fn copy(&self, template: &str) -> String {
        let database = format!("test_{}", self.databases_made.fetch_add(1, Ordering::Relaxed) + 1);
        self.query(&self.url("postgres"), &format!("CREATE DATABASE {database} TEMPLATE {template}"));
        self.url(&database)
    }

    /// Runs `sql` through psql and returns its rows, columns separated by `|`. For tests that check the database from outside.
    pub fn query(&self, url: &str, sql: &str) -> String {
        let mut psql = Command::new(self.binaries.path("psql"));
        without_postgres_settings(&mut psql);
        psql.args(["--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"]);
        psql.args(["--dbname", url, "--command", sql]);
        run(psql, sql).trim_end().to_owned()
    }

    /// Writes a backup of a database to a file, as an operator does it: pg_dump.
    pub fn back_up(&self, url: &str, file: &Path) {
        self.tool("pg_dump", &["--format=custom", "--dbname", url, "--file"], file);
    }

    /// Restores a backup into a new database, and returns its URL.
    pub fn restored(&self, file: &Path) -> String {
        let url = self.create_database();
        self.tool("pg_restore", &["--exit-on-error", "--dbname", &url], file);
        url
    }

    fn tool(&self, program: &str, arguments: &[&str], file: &Path) {
        let mut tool = Command::new(self.binaries.path(program));
        without_postgres_settings(&mut tool);
        tool.args(arguments).arg(file);
        run(tool, program);
    }

    /// Stops the server as a power cut would: connections break, nothing is written any more. No effect on a stopped server.
    pub fn stop_immediate(&self) {
        let mut server = self.server();
        if let Some(mut child) = server.take() {
            let mut pg_ctl = self.user.command(self.binaries.path("pg_ctl"), self.home.path(), &[]);
            pg_ctl.arg("--pgdata").arg(self.data()).args(["--mode=immediate", "--silent", "stop"]);
            // The server may have ended by itself, in which case pg_ctl fails; only that it is gone counts.
            if !pg_ctl.output().is_ok_and(|output| output.status.success()) {
                drop(child.kill());
            }
            drop(child.wait());
        }
    }

    /// Starts a stopped server again, on the same port and with the same data. No effect on a running server.
    pub fn start_again(&self) {
        let mut server = self.server();
        if server.is_none() {
            *server = Some(self.launch().expect("another process has taken the port of the stopped PostgreSQL"));
        }
    }

    /// The directory that belongs to this server.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// A test that panicked elsewhere must not keep this one from stopping its server.
    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn initialise(&self) {
        let mut initdb = self.user.command(self.binaries.path("initdb"), self.home.path(), &[]);
        initdb.arg("--pgdata").arg(self.data()).args(["--username", SUPERUSER, "--auth=trust"]);
        initdb.args(["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8"]);
        if self.binaries.major_version() >= 15 {
            // Most servers collate text by the rules of a language. A statement that relies on byte order fails here first.
            initdb.args(["--locale-provider=icu", "--icu-locale=en-US"]);
        }
        run(initdb, "initdb");
    }

    /// Starts the server and waits until it takes connections. `None` when another process listens on its port.
    fn launch(&self) -> Option<Child> {
        let log = File::create(self.log()).expect("the log of PostgreSQL could not be made");
        let mut command = self.user.command(self.binaries.path("postgres"), self.home.path(), &QUIT_WITH_KEEPER);
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        command.arg("-c").arg(format!("unix_socket_directories={}", self.home.path().display()));
        for setting in ["listen_addresses=127.0.0.1", "max_connections=400", "shared_buffers=128MB"] {
            command.args(["-c", setting]);
        }
        // A server of tests has hundreds of databases, and the autovacuum launcher starts a process for each of them in this time.
        if std::env::var_os("SOAK").is_none() {
            command.args(["-c", "autovacuum_naptime=10min"]);
        }
        command.stdout(Stdio::null()).stderr(log);
        let mut child = keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run");
        for _ in 0..POLLS_MAX {
            if self.is_ready(child.id()) {
                return Some(child);
            }
            if child.try_wait().expect("the state of PostgreSQL could not be read").is_some() {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                assert!(log.contains("Address already in use"), "PostgreSQL ended while starting:\n{log}");
                return None;
            }
            sleep(POLL_INTERVAL);
        }
        drop(child.kill());
        panic!(
            "PostgreSQL takes no connections a minute after its start:\n{}",
            fs::read_to_string(self.log()).unwrap_or_default()
        );
    }

    /// PostgreSQL writes its process id to the first line of this file and its state to the eighth.
    fn is_ready(&self, process_id: u32) -> bool {
        let status = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let mut lines = status.lines().map(str::trim);
        lines.next() == Some(&process_id.to_string()) && lines.nth(6) == Some("ready")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

fn run(mut command: Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} could not be run: {error}"));
    let (answer, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what} failed: {answer}{complaint}");
    answer.into_owned()
}
