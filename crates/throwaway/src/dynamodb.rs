//! One DynamoDB Local in a temporary directory: a Java process that keeps its tables in a SQLite file, or in memory.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::home;
use crate::keeper::{self, KILLED_WITH_KEEPER};
use crate::port::free_port;
use crate::server_user::ServerUser;

/// As in `scripts/dynamodb.sh`.
const VERSION: &str = "2.6.1";
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The limit of polls, about two minutes: a JVM on a busy machine takes half of one.
const POLLS_MAX: u32 = 2_400;
const LAUNCH_ATTEMPTS_MAX: u32 = 5;
/// The first question takes seconds, because it loads the engine. Whose it is does not matter.
const QUESTION: &str = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 2\r\n\
    Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n\
    Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, \
    Signature=0\r\n\r\n{}";

/// A server of its own, from its start to `drop`.
#[derive(Debug)]
pub struct DynamoDb {
    jars: PathBuf,
    home: TempDir,
    is_in_memory: bool,
    port: u16,
    server: Mutex<Option<Child>>,
    tables_named: AtomicU32,
}

impl DynamoDb {
    /// Starts a new, empty server and returns once it answers; `None` where `scripts/dynamodb.sh` would find no jars. It waits for the
    /// disk with every write, some thirty of which it makes in a second.
    pub fn start() -> Option<Self> {
        Self::start_with(false)
    }

    /// The same, but for tests that write much: it forgets all once it is stopped.
    pub fn start_in_memory() -> Option<Self> {
        Self::start_with(true)
    }

    fn start_with(is_in_memory: bool) -> Option<Self> {
        let home = home::make("dynamodb");
        fs::create_dir(home.path().join("data")).expect("a directory could not be made for DynamoDB Local");
        let tables_named = AtomicU32::new(0);
        let mut dynamodb = Self { jars: jars()?, home, is_in_memory, port: free_port(), server: Mutex::new(None), tables_named };
        let child = (0..LAUNCH_ATTEMPTS_MAX)
            .find_map(|_| {
                // Another process can take a port between finding it and listening on it; then another port will do.
                dynamodb.launch().or_else(|| {
                    dynamodb.port = free_port();
                    None
                })
            })
            .expect("DynamoDB Local found every port taken that was free a moment before");
        *dynamodb.server() = Some(child);
        Some(dynamodb)
    }

    /// The URL of `table`. Every user of this machine may do everything.
    pub fn url(&self, table: &str) -> String {
        format!("dynamodb://us-east-1/{table}?endpoint=http://127.0.0.1:{}", self.port)
    }

    /// The URL of a table that no other test has. The store creates it.
    pub fn new_table(&self) -> String {
        self.url(&format!("test_{}", self.tables_named.fetch_add(1, Ordering::Relaxed) + 1))
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
            *server = Some(self.launch().expect("another process has taken the port of the stopped DynamoDB Local"));
        }
    }

    /// A test that panicked elsewhere must not keep this one from stopping its server.
    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    fn arguments(&self) -> Vec<String> {
        let jars = self.jars.display();
        let mut arguments = vec!["-Xmx512m".to_owned(), "-XX:TieredStopAtLevel=1".to_owned(), "-XX:-UsePerfData".to_owned()];
        arguments.extend([format!("-Djava.library.path={jars}"), "-cp".to_owned(), format!("{jars}/*")]);
        arguments.push("com.amazonaws.services.dynamodbv2.local.main.ServerRunner".to_owned());
        arguments.extend(["-port".to_owned(), self.port.to_string()]);
        arguments.extend(match self.is_in_memory {
            true => vec!["-inMemory".to_owned()],
            false => vec!["-dbPath".to_owned(), self.home.path().join("data").display().to_string()],
        });
        // Otherwise each access key has tables of its own; and what a test does is told to no one.
        arguments.extend(["-sharedDb".to_owned(), "-disableTelemetry".to_owned()]);
        arguments
    }

    /// Whether the server answers a question.
    fn answers(&self) -> bool {
        let mut answer = String::new();
        let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).and_then(|mut connection| {
            connection.write_all(QUESTION.as_bytes())?;
            connection.read_to_string(&mut answer)
        });
        asked.is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    /// Starts the server and waits until it answers. `None` when another process listens on its port.
    fn launch(&self) -> Option<Child> {
        let log = File::create(self.home.path().join("log")).expect("the log of DynamoDB Local could not be made");
        // Its jars may lie where only this user can read them.
        let mut command = ServerUser::own().command("java", self.home.path(), &KILLED_WITH_KEEPER);
        command.args(self.arguments());
        command.stdout(Stdio::from(log.try_clone().expect("the log of DynamoDB Local could not be opened twice"))).stderr(log);
        let mut child = keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run");
        for _ in 0..POLLS_MAX {
            if child.try_wait().expect("the state of DynamoDB Local could not be read").is_some() {
                let log = self.log();
                assert!(log.contains("already in use"), "DynamoDB Local ended while starting (Java 17 runs it):\n{log}");
                return None;
            }
            if self.answers() {
                return Some(child);
            }
            sleep(POLL_INTERVAL);
        }
        drop(child.kill());
        panic!("DynamoDB Local does not answer minutes after its start:\n{}", self.log());
    }
}

impl Drop for DynamoDb {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Where `scripts/dynamodb.sh` looks as well.
fn jars() -> Option<PathBuf> {
    let named = std::env::var_os("DYNAMODB_LOCAL_JARS").map(PathBuf::from);
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let fetched = caches.map(|caches| caches.join("timer-platform/dynamodb").join(VERSION));
    named.into_iter().chain(fetched).find(|directory| directory.is_dir())
}
