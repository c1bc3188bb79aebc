use std::{net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{oneshot, watch},
};

use super::Backend;

/// Stands in the address of the database, where no log may show it. The server asks for none.
pub const DATABASE_PASSWORD: &str = "canary-5d1f0c77b2";

/// The way of one node to its database, on a thread of its own. The test can spoil it.
pub struct Link {
    url: String,
    state: watch::Sender<State>,
    /// Dropped with this: the thread ends, and every connection with it.
    _stop: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Default)]
struct State {
    passes: Passes,
    /// Rises with each cut: connections from before it are gone.
    cuts: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Passes {
    #[default]
    Everything,
    /// The server hears everything, and the client hears nothing of the server.
    Questions,
    /// Neither side hears anything, and neither is told: a connection that is half open.
    Nothing,
}

impl Link {
    pub fn start(backend: &Backend) -> Self {
        Self::open(backend, false)
    }

    /// Everything passes but the notifications of the server.
    pub fn without_notifications(backend: &Backend) -> Self {
        Self::open(backend, true)
    }

    fn open(backend: &Backend, drops_notifications: bool) -> Self {
        let (before, server, after) = parts(backend.url());
        let (state, watched) = watch::channel(State::default());
        let (stop, stopped) = oneshot::channel();
        let (port_is, port) = std::sync::mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port of 127.0.0.1");
                port_is.send(listener.local_addr().expect("its own address").port()).expect("the starter waits for it");
                tokio::select! {
                    () = accept(listener, server, watched, drops_notifications) => {}
                    _ = stopped => {}
                }
            });
        });
        let port = port.recv().expect("the port of the link");
        Self { url: format!("{before}127.0.0.1:{port}{after}"), state, _stop: stop }
    }

    /// What the node has for its database.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn fall_silent(&self) {
        self.set(Passes::Nothing);
    }

    pub fn heal(&self) {
        self.set(Passes::Everything);
    }

    /// For this long the server does what it is asked and its answers are lost; then every connection breaks.
    pub async fn lose_answers(&self, during: Duration) {
        self.set(Passes::Questions);
        // The length of the loss is what is wanted.
        tokio::time::sleep(during).await;
        self.state.send_modify(|state| *state = State { passes: Passes::Everything, cuts: state.cuts + 1 });
    }

    fn set(&self, passes: Passes) {
        self.state.send_modify(|state| state.passes = passes);
    }
}

/// What stands before the address of the server in a URL, with a password where there is a user; the address; and what stands after it.
fn parts(url: &str) -> (String, String, String) {
    /// The server of DynamoDB is a parameter: it is otherwise that of a region.
    const ENDPOINT: &str = "endpoint=http://";
    let (before, rest) = match (url.split_once(ENDPOINT), url.split_once('@')) {
        (Some((before, rest)), _) => (format!("{before}{ENDPOINT}"), rest),
        // It refuses a password where it expects none.
        (None, Some((user, rest))) if user.starts_with("mysql:") || user.starts_with("mariadb:") => (format!("{user}@"), rest),
        (None, Some((user, rest))) => (format!("{user}:{DATABASE_PASSWORD}@"), rest),
        (None, None) => url.split_once("://").map(|(scheme, rest)| (format!("{scheme}://"), rest)).expect("a URL"),
    };
    let (server, after) = rest.split_at(rest.find(['/', '&']).unwrap_or(rest.len()));
    (before, server.to_owned(), after.to_owned())
}

async fn accept(listener: TcpListener, server: String, state: watch::Receiver<State>, drops_notifications: bool) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (server, state) = (server.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let cuts = state.borrow().cuts;
            let (mut answers, mut asks) = (Gate::new(state.clone(), cuts), Gate::new(state, cuts));
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
            let frames = drops_notifications.then(Frames::default);
            tokio::select! {
                () = asks.pump(from_client, to_server, None, |passes| passes != Passes::Nothing) => {}
                () = answers.pump(from_server, to_client, frames, |passes| passes == Passes::Everything) => {}
            }
        });
    }
}

/// One direction of one connection.
struct Gate {
    state: watch::Receiver<State>,
    cuts: u32,
}

impl Gate {
    fn new(state: watch::Receiver<State>, cuts: u32) -> Self {
        Self { state, cuts }
    }

    /// Passes on what comes, an end included, as soon as it may pass.
    async fn pump(
        &mut self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        mut frames: Option<Frames>,
        may_pass: fn(Passes) -> bool,
    ) {
        let mut buffer = vec![0; 16 * 1024];
        let mut cut = self.state.clone();
        let cuts = self.cuts;
        loop {
            let read = tokio::select! {
                biased;
                _ = cut.wait_for(|state| state.cuts != cuts) => return,
                read = from.read(&mut buffer) => read.unwrap_or(0),
            };
            let Ok(is_cut) =
                self.state.wait_for(|state| state.cuts != cuts || may_pass(state.passes)).await.map(|now| now.cuts != cuts)
            else {
                return;
            };
            if is_cut || read == 0 {
                return;
            }
            let passed = match &mut frames {
                Some(frames) => to.write_all(&frames.without_notifications(&buffer[..read])).await,
                None => to.write_all(&buffer[..read]).await,
            };
            if passed.is_err() {
                return;
            }
        }
    }
}

/// Follows the messages of a server: a byte for the kind, four for the length, the rest.
#[derive(Default)]
struct Frames {
    has_begun: bool,
    /// What has come of a message's head.
    head: Vec<u8>,
    left: usize,
    is_dropped: bool,
}

impl Frames {
    const NOTIFICATION: u8 = b'A';
    const HEAD_BYTES: usize = 5;

    fn without_notifications(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        if !self.has_begun && !rest.is_empty() {
            self.has_begun = true;
            // The answer to the question for encryption is a byte by itself.
            if matches!(rest[0], b'N' | b'S') {
                kept.push(rest[0]);
                rest = &rest[1..];
            }
        }
        while !rest.is_empty() {
            if self.left == 0 {
                let missing = (Self::HEAD_BYTES - self.head.len()).min(rest.len());
                self.head.extend_from_slice(&rest[..missing]);
                rest = &rest[missing..];
                let &[kind, a, b, c, d] = self.head.as_slice() else { break };
                self.is_dropped = kind == Self::NOTIFICATION;
                self.left = usize::try_from(u32::from_be_bytes([a, b, c, d])).expect("a length").saturating_sub(4);
                if !self.is_dropped {
                    kept.extend_from_slice(&self.head);
                }
                self.head.clear();
            }
            let here = self.left.min(rest.len());
            if !self.is_dropped {
                kept.extend_from_slice(&rest[..here]);
            }
            self.left -= here;
            rest = &rest[here..];
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_the_server_is_another_one() {
        for (url, before, after) in [
            ("postgres://postgres@127.0.0.1:1/test_1", "postgres://postgres:canary-5d1f0c77b2@", "/test_1"),
            ("cassandra://127.0.0.1:1/test_1?replication=1", "cassandra://", "/test_1?replication=1"),
            ("dynamodb://us-east-1/t?endpoint=http://127.0.0.1:1", "dynamodb://us-east-1/t?endpoint=http://", ""),
        ] {
            assert_eq!(parts(url), (before.to_owned(), "127.0.0.1:1".to_owned(), after.to_owned()));
        }
    }

    #[test]
    fn only_notifications_are_dropped_however_the_bytes_are_cut() {
        let message = |kind: u8, body: &[u8]| {
            let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
            [&[kind], &length[..], body].concat()
        };
        let sent = [vec![b'N'], message(b'R', &[0; 4]), message(b'A', b"told"), message(b'Z', b"I"), message(b'A', b"")].concat();
        let expected = [vec![b'N'], message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        for size in 1..=sent.len() {
            let mut frames = Frames::default();
            let kept: Vec<u8> = sent.chunks(size).flat_map(|chunk| frames.without_notifications(chunk)).collect();
            assert_eq!(kept, expected, "in portions of {size}");
        }
    }
}
