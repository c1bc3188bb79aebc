use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
};

use super::{Call, now};

const BACKLOG: u32 = 64;

/// What a receiver does with a call, byte by byte. It closes the connection afterwards.
#[derive(Debug, Clone)]
pub enum Act {
    /// Writes this.
    Say(String),
    /// The same, but not before this is true.
    SayOnce(watch::Receiver<bool>, String),
    /// Waits until the caller hangs up.
    FallSilent,
    /// Cuts the connection without a word, so that the caller gets an RST.
    Reset,
}

/// One call, and what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub call: Call,
    /// What was answered, if anything was.
    pub said: Option<String>,
    /// By the wall clock, in microseconds: just before the answer was written or the connection cut, or when the caller was seen to
    /// have hung up.
    pub ended: Option<i64>,
}

type Script = Arc<dyn Fn(&Call) -> Act + Send + Sync>;
type Exchanges = Arc<Mutex<Vec<Exchange>>>;

/// A receiver that also does what no HTTP server does on purpose. Lives as long as the test.
pub struct Scripted {
    address: SocketAddr,
    exchanges: Exchanges,
}

/// The address of a receiver that is not there yet: no other test gets it, and a call to it is refused.
pub struct Absent {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Absent {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port of 127.0.0.1");
        let address = socket.local_addr().expect("its own address");
        Self { socket, address }
    }

    /// The address of a path of this receiver, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn appear(self, script: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Scripted {
        let exchanges = Exchanges::default();
        let listener = self.socket.listen(BACKLOG).expect("a bound socket can listen");
        tokio::spawn(accept(listener, Arc::clone(&exchanges), Arc::new(script)));
        Scripted { address: self.address, exchanges }
    }
}

impl Scripted {
    pub fn start(script: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Self {
        Absent::new().appear(script)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What happened on this path, in the order of arrival.
    pub fn exchanges(&self, path: &str) -> Vec<Exchange> {
        locked(&self.exchanges).iter().filter(|exchange| exchange.call.path == path).cloned().collect()
    }
}

/// A whole answer of HTTP/1.1, the last on its connection. Each header ends with CR LF.
pub fn http_answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn locked(exchanges: &Exchanges) -> MutexGuard<'_, Vec<Exchange>> {
    exchanges.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, exchanges: Exchanges, script: Script) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(exchange(stream, Arc::clone(&exchanges), Arc::clone(&script)));
    }
}

async fn exchange(mut stream: TcpStream, exchanges: Exchanges, script: Script) {
    // A caller that dies within its call has not made one.
    let Some(call) = read(&mut stream).await else { return };
    let act = script(&call);
    let place = {
        let mut exchanges = locked(&exchanges);
        exchanges.push(Exchange { call, said: None, ended: None });
        exchanges.len() - 1
    };
    let end = |said: Option<String>| {
        let exchange = &mut locked(&exchanges)[place];
        (exchange.said, exchange.ended) = (said, Some(now()));
    };
    let text = match act {
        Act::Say(text) => text,
        Act::SayOnce(mut may_speak, text) => {
            // The task that held the answer back is gone, and the test with it.
            if may_speak.wait_for(|may_speak| *may_speak).await.is_err() {
                return;
            }
            text
        }
        Act::FallSilent => {
            while stream.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {}
            return end(None);
        }
        Act::Reset => {
            stream.set_zero_linger().expect("an option of every socket");
            return end(None);
        }
    };
    end(Some(text.clone()));
    // The caller may be gone, which is its own affair.
    drop(stream.write_all(text.as_bytes()).await);
    drop(stream.shutdown().await);
}

async fn read(stream: &mut TcpStream) -> Option<Call> {
    let mut bytes = Vec::new();
    let head_bytes = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, &mut bytes).await?;
    };
    let arrived = now();
    let head = String::from_utf8(bytes[..head_bytes].to_vec()).expect("a head in ASCII");
    let mut lines = head.lines();
    let mut request = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (request.next()?, request.next()?);
    let headers: HeaderMap = lines.filter_map(|line| line.split_once(':')).map(header).collect();
    let length = headers.get("content-length").map(|length| length.to_str().expect("a length in ASCII"));
    let body_bytes: usize = length.map_or(0, |length| length.parse().expect("a length in bytes"));
    while bytes.len() < head_bytes + body_bytes {
        more(stream, &mut bytes).await?;
    }
    let body = String::from_utf8(bytes.split_off(head_bytes)).expect("bodies are UTF-8");
    Some(Call { method, path, headers, body, arrived })
}

fn header((name, value): (&str, &str)) -> (HeaderName, HeaderValue) {
    (name.parse().expect("the name of a header"), value.trim().parse().expect("the value of a header"))
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    stream.read_buf(bytes).await.ok().filter(|count| *count > 0).map(drop)
}
