//! A proxy between a connection and its server that cuts connections.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// How many bytes pass before a connection is cut, in each direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cuts {
    pub to_server: (u64, u64),
    pub to_client: (u64, u64),
}

/// Forwards bytes, and cuts every connection at some point: in the middle of a message, of a marker, or of an answer.
pub(super) struct Proxy {
    port: u16,
    connections: Arc<AtomicU64>,
}

impl Proxy {
    pub async fn start(server: u16, cuts: Cuts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU64::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let up = chance.between(cuts.to_server);
                let down = chance.between(cuts.to_client);
                tokio::spawn(pass(client, server, up, down));
            }
        });
        Self { port, connections }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn pass(client: TcpStream, server: u16, up: u64, down: u64) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, up) => {}
        () = copy(from_server, to_client, down) => {}
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut left: u64) {
    let mut buffer = [0; 4096];
    while left > 0 {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let passed = read.min(usize::try_from(left).unwrap());
        if to.write_all(&buffer[..passed]).await.is_err() {
            return;
        }
        left -= passed as u64;
    }
}

/// Pseudo-random numbers, the same in every run.
pub(super) struct Chance(pub u64);

impl Chance {
    pub fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least + 1)
    }
}
