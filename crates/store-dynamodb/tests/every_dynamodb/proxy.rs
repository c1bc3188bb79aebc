//! A way to the shared server that breaks the connection of the next write or answers it by itself, and that counts what requests cost.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{server, table};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    CutBeforeTheWrite,
    CutAfterTheWrite,
    /// So many writes are refused because there are too many of them.
    Throttle(usize),
}

/// What requests have cost, in the units that DynamoDB bills.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    pub read: f64,
    pub write: f64,
}

pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: Mutex<Option<Fault>>,
    units: Mutex<Units>,
}

impl Shared {
    fn spend(&self, is_write: bool, units: f64) {
        let mut spent = self.units.lock().unwrap();
        *(if is_write { &mut spent.write } else { &mut spent.read }) += units;
    }
}

impl Proxy {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("dynamodb://us-east-1/{}?endpoint=http://127.0.0.1:{port}", table(&server().new_table()));
        let shared = Arc::<Shared>::default();
        let passing = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&passing);
                tokio::spawn(async move {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server().port())).await.unwrap();
                    // Either end may break the connection; that is all there is to it.
                    drop(pass(client, server, &shared).await);
                });
            }
        });
        Self { url, shared }
    }

    pub fn arm(&self, fault: Fault) {
        *self.shared.next.lock().unwrap() = Some(fault);
    }

    /// Whether the fault is still to come.
    pub fn is_armed(&self) -> bool {
        self.shared.next.lock().unwrap().is_some()
    }

    /// What was spent since the last time that this was asked.
    pub fn spent(&self) -> Units {
        std::mem::take(&mut self.shared.units.lock().unwrap())
    }
}

/// Passes on requests of the client, which waits for the answer of each, and the answers.
async fn pass(mut client: TcpStream, mut server: TcpStream, shared: &Shared) -> std::io::Result<()> {
    while let Some(request) = message(&mut client).await? {
        let operation = operation(&request);
        let is_write = ["UpdateItem", "DeleteItem"].contains(&operation.as_str());
        let fault = if is_write { take(&shared.next) } else { None };
        match fault {
            Some(Fault::CutBeforeTheWrite) => return Ok(()),
            Some(Fault::Throttle(_)) => client.write_all(THROTTLED.as_bytes()).await?,
            fault => {
                let is_read = ["GetItem", "BatchGetItem", "Query"].contains(&operation.as_str());
                server.write_all(&if is_write || is_read { asking_for_units(&request) } else { request }).await?;
                let Some(answer) = message(&mut server).await? else { return Ok(()) };
                shared.spend(is_write, units(&answer));
                if fault == Some(Fault::CutAfterTheWrite) {
                    return Ok(());
                }
                client.write_all(&answer).await?;
            }
        }
    }
    Ok(())
}

/// What a request asks for, by the header that names it.
fn operation(request: &[u8]) -> String {
    const TARGET: &str = "DynamoDB_20120810.";
    let text = String::from_utf8_lossy(request);
    let target = text.find(TARGET).map(|place| &text[place + TARGET.len()..]);
    target.and_then(|target| target.lines().next()).unwrap_or_default().trim().to_owned()
}

/// The request, with the wish to be told what it costs. A DynamoDB Local verifies no signature.
fn asking_for_units(request: &[u8]) -> Vec<u8> {
    const WISH: &str = "\"ReturnConsumedCapacity\":\"TOTAL\",";
    let text = String::from_utf8_lossy(request);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let named = |line: &&str| line.to_lowercase().starts_with("content-length:");
    let length = format!("Content-Length: {}", body.len() + WISH.len());
    let head: Vec<&str> = head.lines().map(|line| if named(&line) { length.as_str() } else { line }).collect();
    format!("{}\r\n\r\n{{{WISH}{}", head.join("\r\n"), &body[1..]).into_bytes()
}

/// The units that an answer names, in one sum.
fn units(answer: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(answer);
    let number = |rest: &str| rest.split(['}', ',', ']']).next().and_then(|number| number.trim().parse::<f64>().ok());
    text.split("\"CapacityUnits\":").skip(1).filter_map(number).sum()
}

/// As DynamoDB says it.
const THROTTLED: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 112\r\n\r\n\
    {\"__type\":\"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException\",\"message\":\"too many writes\"}";

fn take(armed: &Mutex<Option<Fault>>) -> Option<Fault> {
    let mut armed = armed.lock().unwrap();
    let fault = *armed;
    *armed = match fault {
        Some(Fault::Throttle(times)) if times > 1 => Some(Fault::Throttle(times - 1)),
        _ => None,
    };
    fault
}

/// One message of HTTP with its body; `None` at the end of the connection.
async fn message(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        if let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            let is_whole = match length {
                Some(length) => bytes.len() >= head + 4 + length,
                None => !text.contains("transfer-encoding: chunked") || bytes.ends_with(b"\r\n0\r\n\r\n"),
            };
            if is_whole {
                return Ok(Some(bytes));
            }
        }
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn the_answer_of_the_proxy_has_the_length_it_says() {
    let (_, body) = THROTTLED.split_once("\r\n\r\n").unwrap();
    assert!(THROTTLED.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
}
