//! The program as the benchmark meets it: creates through HTTP, and calls that arrive once each. On the loopback interface only.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

const PATIENCE: Duration = Duration::from_secs(30);
const STARTS_MAX: usize = 600;

/// Killed when it is dropped.
struct Floor {
    child: Child,
    address: SocketAddr,
}

impl Floor {
    fn start(database_url: &str) -> Self {
        // Closed again: only its number is needed.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_floor"))
            .arg("serve")
            .env_clear()
            .envs([("DATABASE_URL", database_url), ("PORT", &address.port().to_string())])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut floor = Self { child, address };
        for _ in 0..STARTS_MAX {
            assert!(floor.child.try_wait().unwrap().is_none(), "the program ended while it started");
            if TcpStream::connect(address).is_ok() {
                return floor;
            }
            thread::sleep(PATIENCE / 600);
        }
        panic!("the program does not listen")
    }

    /// Sends one request over a connection of its own, and returns the answer with its head.
    fn post(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: floor\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn timer(address: SocketAddr, number: usize, due: Timestamp) -> String {
    format!(
        r#"{{"execute_at":"{due}","namespace":"a","callback":{{"type":"http","url":"http://{address}/{number}","payload":{{"number":{number}}}}}}}"#
    )
}

fn in_millis(millis: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_millis(millis)
}

/// Listens, answers every call, and tells which numbers were called.
fn receive() -> (SocketAddr, Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (arrived, arrivals) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let arrived = arrived.clone();
            thread::spawn(move || answer_calls(stream, &arrived));
        }
    });
    (address, arrivals)
}

fn answer_calls(stream: TcpStream, arrived: &Sender<usize>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (number, body_bytes) = read_head(&mut reader)?;
        let mut body = vec![0; body_bytes];
        reader.read_exact(&mut body).ok()?;
        assert_eq!(String::from_utf8(body).unwrap(), format!(r#"{{"number":{number}}}"#));
        arrived.send(number).ok()?;
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    }
}

/// The number in the path, and the length of the body.
fn read_head(reader: &mut impl BufRead) -> Option<(usize, usize)> {
    let (mut number, mut body_bytes) = (None, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(path) = line.strip_prefix("post /") {
            number = path.split(' ').next()?.parse().ok();
        } else if let Some(length) = line.strip_prefix("content-length: ") {
            body_bytes = length.parse().ok();
        } else if line.is_empty() {
            return Some((number?, body_bytes?));
        }
    }
}

fn next(arrivals: &Receiver<usize>) -> usize {
    arrivals.recv_timeout(PATIENCE).expect("a call is missing")
}

fn every_timer_is_called_once(database_url: &str) {
    let floor = Floor::start(database_url);
    let (address, arrivals) = receive();
    for number in 0..20 {
        let answer = floor.post("/timers", &timer(address, number, in_millis(500)));
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    let batch: Vec<_> = (20..1_500).map(|number| timer(address, number, in_millis(200))).collect();
    let answer = floor.post("/timers/batch", &format!(r#"{{"timers":[{}]}}"#, batch.join(",")));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(answer.matches(r#""status":201"#).count(), 1_480);

    let called: BTreeSet<_> = (0..1_500).map(|_| next(&arrivals)).collect();
    assert_eq!(called, (0..1_500).collect());
    // One that is due already; a second call of another timer would come before it.
    floor.post("/timers", &timer(address, 9_999, in_millis(-60_000)));
    assert_eq!(next(&arrivals), 9_999);
}

fn a_kill_forgets_no_timer(database_url: &str) {
    let (address, arrivals) = receive();
    let floor = Floor::start(database_url);
    for number in 0..50 {
        let answer = floor.post("/timers", &timer(address, number, in_millis(2_000)));
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    drop(floor);
    let _again = Floor::start(database_url);
    let mut called = BTreeSet::new();
    // On a slow machine, some may have been called before the kill and again after it.
    while called.len() < 50 {
        called.insert(next(&arrivals));
    }
}

fn sqlite(home: &Path) -> String {
    format!("sqlite://{}", home.join("floor.db").display())
}

#[test]
fn every_timer_is_called_once_on_sqlite() {
    let home = tempfile::tempdir().unwrap();
    every_timer_is_called_once(&sqlite(home.path()));
}

#[test]
fn every_timer_is_called_once_on_postgres() {
    every_timer_is_called_once(&throwaway::postgres().create_database());
}

#[test]
fn a_kill_forgets_no_timer_on_sqlite() {
    let home = tempfile::tempdir().unwrap();
    a_kill_forgets_no_timer(&sqlite(home.path()));
}

#[test]
fn a_kill_forgets_no_timer_on_postgres() {
    a_kill_forgets_no_timer(&throwaway::postgres().create_database());
}

#[test]
fn what_is_no_timer_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let floor = Floor::start(&sqlite(home.path()));
    for (path, body, status) in [("/timers", "{}", "400"), ("/timers/batch", "[]", "400"), ("/elsewhere", "{}", "404")] {
        let answer = floor.post(path, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}
