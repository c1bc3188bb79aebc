//! One nats-server process and its directory.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::{monitor, program};
use crate::home;
use crate::keeper::{self, KILLED_WITH_KEEPER};
use crate::port::free_port;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The limit of polls, about a minute: an election on a busy machine takes seconds, and a hang should still fail the test.
const POLLS_MAX: u32 = 3_000;
/// A server greets each new connection at once; another program on its port may say nothing.
const GREETING_WITHIN: Duration = Duration::from_secs(1);
const PORT_TAKEN: &str = "address already in use";

/// The ports of one server.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    pub client: u16,
    pub monitor: u16,
    /// The port for the other servers of its cluster.
    pub route: u16,
}

impl Ports {
    pub fn free() -> Self {
        Self { client: free_port(), monitor: free_port(), route: free_port() }
    }

    /// The name of the server on these ports. It tells which server has answered, and a cluster identifies its members by it.
    pub fn server_name(&self) -> String {
        format!("throwaway-{}-{}", std::process::id(), self.client)
    }
}

#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    home: TempDir,
    ports: Ports,
    process: Mutex<Option<Child>>,
}

impl Server {
    /// Writes the configuration of a server on `ports` into a directory of its own; nothing runs yet.
    pub fn set_up(ports: Ports, configuration: impl FnOnce(&Path) -> Map<String, Value>) -> Self {
        let server = Self { program: program::find(), home: home::make("nats"), ports, process: Mutex::new(None) };
        let text = format!("{:#}", Value::Object(configuration(server.home())));
        fs::write(server.configuration_file(), text).expect("the configuration of nats-server could not be written");
        server
    }

    /// Starts the server unless it runs, and waits until it takes connections. False when another process has one of its ports.
    pub fn start(&self) -> bool {
        let mut process = self.process();
        if process.is_none() {
            let earlier = self.log().len();
            // The child is stored before it is ready, so that it is stopped like any other should the wait for it fail.
            let child = process.insert(self.spawn());
            if !self.takes_connections(child, earlier) {
                *process = None;
            }
        }
        process.is_some()
    }

    /// Kills the server, paused or not. No effect on a stopped server.
    pub fn stop_immediate(&self) {
        if let Some(mut child) = self.process().take() {
            // The process may have ended by itself; only that it is gone counts.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Suspends the process; returns once it is stopped.
    pub fn pause(&self) {
        let id = self.signal("STOP");
        let tasks = Path::new("/proc").join(id.to_string()).join("task");
        self.poll("could not be paused", || all_stopped(&tasks).then_some(()));
    }

    pub fn resume(&self) {
        self.signal("CONT");
    }

    pub fn is_started(&self) -> bool {
        self.process().is_some()
    }

    /// Whether everything that it stores is available: JetStream runs, streams are recovered and, in a cluster, have caught up.
    pub fn is_healthy(&self) -> bool {
        monitor::get(self.ports.monitor, "/healthz").is_some()
    }

    /// Polls until there is an answer; panics with the log when there is none for about a minute.
    pub fn poll<T>(&self, complaint: &str, mut ask: impl FnMut() -> Option<T>) -> T {
        for _ in 0..POLLS_MAX {
            if let Some(answer) = ask() {
                return answer;
            }
            sleep(POLL_INTERVAL);
        }
        panic!("nats-server {complaint}:\n{}", self.log());
    }

    pub fn monitor(&self, path: &str) -> Option<Value> {
        monitor::get(self.ports.monitor, path)
    }

    pub fn ports(&self) -> Ports {
        self.ports
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The log since its first start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.home().join("log")
    }

    fn configuration_file(&self) -> PathBuf {
        self.home().join("nats.conf")
    }

    /// A test that panicked elsewhere must not keep this one from stopping its server.
    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self) -> Child {
        let mut command = Command::new("setpriv");
        command.args(KILLED_WITH_KEEPER).arg("--").arg(&self.program).arg("--config").arg(self.configuration_file());
        command.current_dir(self.home()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.open_log());
        keeper::spawn(command).expect("setpriv (package `util-linux`) could not be run")
    }

    /// Waits until the server takes connections; false when it ended because a port was taken. The log is read from the byte
    /// `log_from`.
    fn takes_connections(&self, child: &mut Child, log_from: usize) -> bool {
        let started = self.poll("takes no connections a minute after its start", || {
            if self.greets() {
                return Some(true);
            }
            child.try_wait().expect("the state of nats-server could not be read").map(|_| false)
        });
        if !started {
            let log = self.log();
            assert!(log[log_from..].contains(PORT_TAKEN), "nats-server ended while starting:\n{log}");
        }
        started
    }

    fn open_log(&self) -> File {
        let log = OpenOptions::new().create(true).append(true).open(self.log_file());
        log.expect("the log of nats-server could not be made")
    }

    /// Whether a client would be greeted on this port, and by this very server.
    fn greets(&self) -> bool {
        let greeting = || {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.client)).ok()?;
            stream.set_read_timeout(Some(GREETING_WITHIN)).ok()?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).ok()?;
            serde_json::from_str::<Value>(line.strip_prefix("INFO ")?).ok()
        };
        greeting().is_some_and(|info| info["server_name"] == self.ports.server_name())
    }

    fn signal(&self, name: &str) -> u32 {
        let id = self.process().as_ref().expect("a stopped server takes no signals: start it first").id();
        let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} could not be sent to nats-server");
        id
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

fn all_stopped(tasks: &Path) -> bool {
    let states: Vec<bool> = fs::read_dir(tasks)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok())
        .map(|stat| is_stopped(&stat))
        .collect();
    !states.is_empty() && states.into_iter().all(|stopped| stopped)
}

/// The state follows the command's name in brackets, which can hold anything: `5100 (nats-server) T 1 …`.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_task_is_known_by_its_state() {
        assert!(is_stopped("5100 (nats-server) T 1 5100 5100 0"));
        assert!(!is_stopped("5100 (nats-server) S 1 5100 5100 0"));
        assert!(!is_stopped("5100 (T) ) R 1 5100 5100 0"));
        assert!(!is_stopped(""));
    }
}
