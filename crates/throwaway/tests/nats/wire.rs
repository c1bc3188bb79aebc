//! A minimal client of the NATS text protocol, for tests of the protocol itself.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Long enough for a busy machine, short enough for a test that fails.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const ATTEMPT_WITHIN: Duration = Duration::from_millis(500);
const ATTEMPTS_MAX: u32 = 60;

pub struct Client {
    reader: BufReader<TcpStream>,
    pub info: Value,
    inboxes: u32,
}

impl Client {
    /// Connects without credentials.
    pub fn connect(url: &str) -> Self {
        Self::connect_as(url, json!({}))
    }

    /// Connects with these members of the CONNECT message, such as `user` and `pass`.
    pub fn connect_as(url: &str, mut credentials: Value) -> Self {
        let (stream, info) = greeted(url);
        let mut client = Self { reader: BufReader::new(stream), info, inboxes: 0 };
        credentials["verbose"] = json!(false);
        credentials["headers"] = json!(true);
        client.send(&format!("CONNECT {credentials}\r\n"));
        client
    }

    /// Sends text. A connection that the server has closed shows at the next read.
    pub fn send(&mut self, text: &str) {
        drop(self.reader.get_mut().write_all(text.as_bytes()));
    }

    pub fn publish(&mut self, subject: &str, payload: &str) {
        self.send(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
    }

    /// All errors that the server reports about what was sent until now.
    pub fn complaints(&mut self) -> Vec<String> {
        self.send("PING\r\n");
        let before_pong = std::iter::from_fn(|| Some(self.line()).filter(|line| line != "PONG"));
        before_pong.inspect(|line| assert_ne!(line, "", "the server has ended the connection")).collect()
    }

    /// A request to the JetStream API, and its answer.
    pub fn api(&mut self, operation: &str, payload: &Value) -> Value {
        self.request(&format!("$JS.API.{operation}"), &payload.to_string())
    }

    pub fn request(&mut self, subject: &str, payload: &str) -> Value {
        self.exchange(subject, "", payload).expect("an answer")
    }

    /// Stores one message, with as many attempts as it takes, and returns the acknowledgement.
    ///
    /// A server that was just elected to lead a stream may miss the first attempt; the id keeps it from storing two.
    pub fn store(&mut self, subject: &str, id: &str) -> Value {
        let read_timeout = self.reader.get_ref().read_timeout().expect("a socket");
        self.reader.get_ref().set_read_timeout(Some(ATTEMPT_WITHIN)).expect("a socket");
        let mut attempts = (0..ATTEMPTS_MAX).map(|_| self.exchange(subject, &format!("Nats-Msg-Id: {id}\r\n"), ""));
        let acknowledgement = attempts.find(|answer| !answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
        self.reader.get_ref().set_read_timeout(read_timeout).expect("a socket");
        acknowledgement.expect("an answer to one of so many attempts").expect("an answer")
    }

    fn exchange(&mut self, subject: &str, headers: &str, payload: &str) -> std::io::Result<Value> {
        self.inboxes += 1;
        let number = self.inboxes;
        let inbox = format!("inbox.{}.{number}", self.reader.get_ref().local_addr()?.port());
        let headers = format!("NATS/1.0\r\n{headers}\r\n");
        let lengths = format!("{} {}", headers.len(), headers.len() + payload.len());
        self.send(&format!("SUB {inbox} {number}\r\nHPUB {subject} {inbox} {lengths}\r\n{headers}{payload}\r\n"));
        loop {
            let head = self.try_line()?;
            let words: Vec<&str> = head.split(' ').collect();
            let ["MSG", _, subscription, .., length] = words[..] else { panic!("no answer to {subject}: {head:?}") };
            let mut body = vec![0; length.parse::<usize>().expect("a length") + "\r\n".len()];
            self.reader.read_exact(&mut body)?;
            // The answer to an attempt that was given up may come before the expected one.
            if subscription == number.to_string() {
                return Ok(serde_json::from_slice(&body).expect("an answer in JSON"));
            }
        }
    }

    /// The next line that is neither a ping of the server nor news about its cluster; empty at the end.
    pub fn line(&mut self) -> String {
        self.try_line().expect("the server answers")
    }

    fn try_line(&mut self) -> std::io::Result<String> {
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                // A reset also ends a connection: the server closed it with unread input.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(String::new()),
                read => read?,
            };
            match line.trim_end() {
                "PING" => self.send("PONG\r\n"),
                news if news.starts_with("INFO ") => {}
                line => return Ok(line.to_owned()),
            }
        }
    }
}

/// A connection on which only the server's greeting was read.
pub fn greeted(url: &str) -> (TcpStream, Value) {
    let (_, address) = url.split_once("://").expect("a scheme");
    let stream = TcpStream::connect(address).expect("the server takes connections");
    stream.set_read_timeout(Some(ANSWER_WITHIN)).expect("a socket");
    let mut line = String::new();
    // Reads byte by byte, because what follows the line belongs to the caller.
    BufReader::with_capacity(1, &stream).read_line(&mut line).expect("the server speaks first");
    let info = serde_json::from_str(line.strip_prefix("INFO ").expect("a greeting")).expect("a greeting in JSON");
    (stream, info)
}
