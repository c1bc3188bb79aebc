//! One MariaDB, MySQL or TiDB server in a temporary directory, or three MariaDB servers that replicate to each other.

mod galera;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::home;
use crate::keeper::{self, KILLED_WITH_KEEPER};
use crate::port::free_port;
use crate::server_user::ServerUser;

pub use galera::Galera;

/// Names another MySQL: a directory of `scripts/mysql.sh`.
const MYSQL_ROOT: &str = "MYSQL_SERVER_ROOT";
/// Put there by `scripts/setup.sh`.
const MYSQL_OF_THIS_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/mysql");
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The limit of polls, about a minute: crash recovery on a busy machine takes seconds, and a hang should still fail the test.
const POLLS_MAX: u32 = 3_000;
const LAUNCH_ATTEMPTS_MAX: u32 = 5;
const READY: &str = "ready for connections";
const TIDB_READY: &str = "server is running MySQL protocol";
/// It takes connections, and it is in step with the other servers.
const GALERA_READY: [&str; 2] = ["mariadbd: ready for connections", "Synchronized with group, ready for connections"];

/// The user that tests log in as, without a password. By its address, so that no name has to be resolved.
const CREATE_USER: &str = "CREATE USER IF NOT EXISTS 'timer'@'127.0.0.1' IDENTIFIED BY '';
GRANT ALL PRIVILEGES ON *.* TO 'timer'@'127.0.0.1' WITH GRANT OPTION;
";

/// A database for each test has many tables, and TiDB would give each part of each a range of the storage of its own.
const TIDB_CONFIGURATION: &str = "split-table = false\n";
/// Nor should it look through tables in the background that are gone a moment later.
const TIDB_SETTINGS: &str = "SET GLOBAL tidb_enable_auto_analyze = OFF";

/// The kinds of server that speak this protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Mariadb,
    /// A MariaDB that replicates to other servers.
    Galera(galera::Member),
    Mysql {
        root: PathBuf,
    },
    /// A TiDB with its storage in the same process.
    Tidb {
        program: PathBuf,
    },
}

/// A server of its own, from its start to `drop`.
#[derive(Debug)]
pub struct Mysql {
    kind: Kind,
    user: ServerUser,
    home: TempDir,
    port: u16,
    server: Mutex<Option<Child>>,
    databases_made: AtomicU32,
}

impl Mysql {
    /// Sets up a new, empty MariaDB and starts it; returns once it takes connections.
    pub fn start_mariadb() -> Self {
        Self::start(Kind::Mariadb)
    }

    /// The same with a MySQL; `None` where there is none to be had.
    pub fn start_mysql() -> Option<Self> {
        if let Some(root) = std::env::var_os(MYSQL_ROOT).map(PathBuf::from) {
            assert!(root.join("bin/mysqld").is_file(), "{MYSQL_ROOT} names no directory of scripts/mysql.sh");
            return Some(Self::start(Kind::Mysql { root }));
        }
        let root = fs::canonicalize(MYSQL_OF_THIS_CHECKOUT).ok()?;
        root.join("bin/mysqld").is_file().then(|| Self::start(Kind::Mysql { root }))
    }

    /// The same with a TiDB; `None` where `scripts/tidb.sh` would find none.
    pub fn start_tidb() -> Option<Self> {
        let program = tidb_program()?;
        let tidb = Self::start(Kind::Tidb { program });
        tidb.run_client(&["--user=root", "--execute", CREATE_USER], "adding a user to TiDB");
        tidb.run_client(&["--user=root", "--execute", TIDB_SETTINGS], "setting TiDB up");
        Some(tidb)
    }

    fn start(kind: Kind) -> Self {
        let home = home::make("mysql");
        // These may run as any user, and may lie where only this one can read them.
        let is_in_a_cache =
            matches!(kind, Kind::Tidb { .. }) || matches!(kind, Kind::Mysql { .. } if std::env::var_os(MYSQL_ROOT).is_some());
        let user = if is_in_a_cache { ServerUser::own() } else { ServerUser::choose() };
        user.give(home.path());
        let mut mysql = Self { kind, user, home, port: free_port(), server: Mutex::new(None), databases_made: AtomicU32::new(0) };
        mysql.initialise();
        let child = (0..LAUNCH_ATTEMPTS_MAX)
            .find_map(|_| {
                // Another process can take a port between finding it and listening on it; then another port will do.
                mysql.launch().or_else(|| {
                    mysql.port = free_port();
                    None
                })
            })
            .expect("the MySQL server found every port taken that was free a moment before");
        *mysql.server() = Some(child);
        mysql
    }

    /// What people call it.
    pub const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Mariadb => "MariaDB",
            Kind::Galera(_) => "Galera",
            Kind::Mysql { .. } => "MySQL",
            Kind::Tidb { .. } => "TiDB",
        }
    }

    /// The URL of `database`. Every user of this machine may log in without a password.
    pub fn url(&self, database: &str) -> String {
        let scheme = if matches!(self.kind, Kind::Mariadb | Kind::Galera(_)) { "mariadb" } else { "mysql" };
        format!("{scheme}://timer@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database and returns its URL. Its texts have another character set than ours, as on many servers.
    pub fn create_database(&self) -> String {
        let database = format!("test_{}", self.databases_made.fetch_add(1, Ordering::Relaxed) + 1);
        self.query(&self.url(""), &format!("CREATE DATABASE {database} DEFAULT CHARACTER SET latin1"));
        self.url(&database)
    }

    /// Runs `sql` through the command line client and returns its rows, columns separated by tabs. For tests that check the
    /// database from outside.
    pub fn query(&self, url: &str, sql: &str) -> String {
        let database = database_of(url);
        let mut arguments = vec!["--user=timer", "--execute", sql];
        if !database.is_empty() {
            arguments.push(database);
        }
        self.run_client(&arguments, sql).trim_end().to_owned()
    }

    fn run_client(&self, arguments: &[&str], what: &str) -> String {
        let mut client = self.client("mariadb");
        client.args(["--batch", "--skip-column-names"]).args(arguments);
        run(client, what)
    }

    /// Writes a backup of a database to a file, as an operator does it: mariadb-dump.
    pub fn back_up(&self, url: &str, file: &Path) {
        let mut dump = self.client("mariadb-dump");
        dump.args(["--user=timer", "--single-transaction", "--hex-blob", database_of(url)]).arg("--result-file").arg(file);
        run(dump, "mariadb-dump (scripts/setup.sh installs it)");
    }

    /// Restores a backup into a new database, and returns its URL.
    pub fn restored(&self, file: &Path) -> String {
        let url = self.create_database();
        let mut client = self.client("mariadb");
        client.args(["--user=timer", database_of(&url)]).stdin(File::open(file).expect("a backup that can be read"));
        run(client, "restoring a backup");
        url
    }

    fn client(&self, program: &str) -> Command {
        let mut client = Command::new(program);
        client.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port", &self.port.to_string()]);
        client.arg("--default-character-set=utf8mb4");
        client
    }

    /// Kills the server: connections break, nothing is written any more. No effect on a stopped server.
    pub fn stop_immediate(&self) {
        if let Some(mut child) = self.server().take() {
            // It may have ended by itself; only that it is gone counts.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts a stopped server again, on the same port and with the same data. No effect on a running server.
    pub fn start_again(&self) {
        let mut server = self.server();
        if server.is_none() {
            *server = Some(self.launch().expect("another process has taken the port of the stopped MySQL server"));
        }
    }

    /// The directory that belongs to this server.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn temporary(&self) -> PathBuf {
        self.home.path().join("tmp")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// A test that panicked elsewhere must not keep this one from stopping its server.
    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command of the server's own user, for MariaDB and MySQL; `options` are those of setpriv(1).
    fn command(&self, program: &Path, options: &[&str]) -> Command {
        let mut command = self.user.command(program, self.home.path(), options);
        command.arg("--no-defaults").arg(format!("--datadir={}", self.data().display()));
        // Its own: a server removes what it takes for its temporary files when it starts, and would remove those of another.
        command.arg(format!("--tmpdir={}", self.temporary().display()));
        // Tables share one file: a database for each test has many of them, and each would be made and removed as a file of its own.
        command.args(["--loose-innodb-log-file-size=48M", "--innodb-file-per-table=0"]);
        // Nothing waits for the disk: what a killed server has written is in the kernel. Its settings say that it is durable all the same.
        command.args(["--innodb-flush-method=nosync", "--skip-innodb-doublewrite"]);
        match &self.kind {
            Kind::Mysql { root } => command.arg(format!("--basedir={}", root.display())).arg("--performance-schema=OFF"),
            Kind::Mariadb | Kind::Galera(_) | Kind::Tidb { .. } => command.arg("--debug-no-sync"),
        };
        command
    }

    fn program(&self) -> PathBuf {
        match &self.kind {
            Kind::Mariadb | Kind::Galera(_) => PathBuf::from("/usr/sbin/mariadbd"),
            Kind::Mysql { root } => root.join("bin/mysqld"),
            Kind::Tidb { program } => program.clone(),
        }
    }

    fn initialise(&self) {
        fs::create_dir(self.temporary()).expect("a directory could not be made for a MySQL server");
        self.user.give(&self.temporary());
        let mut command = match self.kind {
            // It sets itself up at its first start.
            Kind::Tidb { .. } => {
                fs::write(self.tidb_configuration(), TIDB_CONFIGURATION).expect("a file could not be written for a TiDB server");
                return;
            }
            Kind::Mariadb | Kind::Galera(_) => {
                let mut command = self.command(Path::new("mariadb-install-db"), &[]);
                command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
                command
            }
            Kind::Mysql { .. } => {
                let mut command = self.command(&self.program(), &[]);
                command.arg("--initialize-insecure");
                command
            }
        };
        command.stdin(Stdio::null());
        run(command, "setting up a MySQL server (scripts/setup.sh installs what it needs)");
        fs::write(self.home.path().join("init.sql"), CREATE_USER).expect("a file could not be written for a MySQL server");
    }

    fn mysql_command(&self) -> Command {
        let mut command = self.command(&self.program(), &KILLED_WITH_KEEPER);
        command.arg(format!("--socket={}", self.home.path().join("socket").display()));
        command.arg(format!("--pid-file={}", self.home.path().join("pid").display()));
        command.arg(format!("--port={}", self.port));
        command.args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--loose-skip-ssl",
            "--skip-log-bin",
            "--max-connections=400",
        ]);
        if !self.joins() {
            command.arg(format!("--init-file={}", self.home.path().join("init.sql").display()));
        }
        match &self.kind {
            Kind::Mysql { .. } => {
                command.args(["--mysqlx=OFF", "--max-prepared-stmt-count=100000"]);
            }
            Kind::Galera(member) => member.configure(&mut command, &self.data()),
            Kind::Mariadb | Kind::Tidb { .. } => {}
        }
        command
    }

    /// Whether it will be given its data by another server.
    fn joins(&self) -> bool {
        matches!(&self.kind, Kind::Galera(member) if !member.begins(&self.data()))
    }

    fn tidb_configuration(&self) -> PathBuf {
        self.home.path().join("tidb.toml")
    }

    fn tidb_command(&self) -> Command {
        let mut command = self.user.command(self.program(), self.home.path(), &KILLED_WITH_KEEPER);
        command.args(["-store=unistore", "-host=127.0.0.1", "-advertise-address=127.0.0.1", "-report-status=false"]);
        command.arg(format!("-config={}", self.tidb_configuration().display()));
        command.arg(format!("-path={}", self.data().display())).arg(format!("-P={}", self.port));
        command.arg(format!("-socket={}", self.home.path().join("socket").display()));
        command.arg(format!("-temp-dir={}", self.temporary().display()));
        command.arg(format!("-log-file={}", self.log().display()));
        command
    }

    /// Starts the server and waits until it takes connections. `None` when another process listens on its port.
    fn launch(&self) -> Option<Child> {
        let log = File::create(self.log()).expect("the log of a MySQL server could not be made");
        let (mut command, ready): (_, &[&str]) = match self.kind {
            Kind::Tidb { .. } => (self.tidb_command(), &[TIDB_READY]),
            Kind::Galera(_) => (self.mysql_command(), &GALERA_READY),
            Kind::Mariadb | Kind::Mysql { .. } => (self.mysql_command(), &[READY]),
        };
        command.stdout(Stdio::null()).stderr(log);
        let mut child = keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run");
        for _ in 0..POLLS_MAX {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            if ready.iter().all(|words| log.contains(words)) {
                return Some(child);
            }
            if child.try_wait().expect("the state of a MySQL server could not be read").is_some() {
                assert!(log.to_lowercase().contains("address already in use"), "a MySQL server ended while starting:\n{log}");
                return None;
            }
            sleep(POLL_INTERVAL);
        }
        drop(child.kill());
        panic!(
            "a MySQL server takes no connections a minute after its start:\n{}",
            fs::read_to_string(self.log()).unwrap_or_default()
        );
    }
}

fn database_of(url: &str) -> &str {
    url.rsplit_once('/').map_or("", |(_, database)| database)
}

impl Drop for Mysql {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Where `scripts/tidb.sh` looks as well.
fn tidb_program() -> Option<PathBuf> {
    let named = std::env::var_os("TIDB_SERVER_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("tidb-server"));
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let built = caches.map(|caches| caches.join("timer-platform/tidb/tidb-server"));
    named.into_iter().chain(on_path).chain(built).find(|program| program.is_file())
}

fn run(mut command: Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} could not be run: {error}"));
    let (answer, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what} failed: {answer}{complaint}");
    answer.into_owned()
}
