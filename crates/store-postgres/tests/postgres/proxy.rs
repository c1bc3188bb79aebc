//! A wire to the database that can be cut at the worst moment.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Passes everything on, until a client says `marker`: from then on that client's words still reach the server, but no answer
/// comes back. Once the server has answered, the connection is cut.
pub struct Proxy {
    pub port: u16,
    cuts: Arc<AtomicUsize>,
    silent: Arc<AtomicBool>,
    bytes_per_second: Arc<AtomicUsize>,
}

impl Proxy {
    pub async fn start(server_port: u16, marker: &'static [u8]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (cuts, silent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let bytes_per_second = Arc::new(AtomicUsize::new(usize::MAX));
        let (noted, hushed, speed) = (Arc::clone(&cuts), Arc::clone(&silent), Arc::clone(&bytes_per_second));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (noted, hushed, speed) = (Arc::clone(&noted), Arc::clone(&hushed), Arc::clone(&speed));
                tokio::spawn(async move {
                    let server = TcpStream::connect(("127.0.0.1", server_port)).await.unwrap();
                    pass(client, server, marker, &noted, &hushed, &speed).await;
                });
            }
        });
        Self { port, cuts, silent, bytes_per_second }
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    /// While silent, nothing passes in either direction, and no connection ends: a cable that was pulled out.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// How fast answers come back, over each connection.
    pub fn set_bytes_per_second(&self, bytes: usize) {
        self.bytes_per_second.store(bytes, Ordering::SeqCst);
    }
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    marker: &[u8],
    cuts: &AtomicUsize,
    silent: &AtomicBool,
    bytes_per_second: &AtomicUsize,
) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) = (client.into_split(), server.into_split());
    let (mut said, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let (mut is_marked, mut tail) = (false, Vec::new());
    loop {
        tokio::select! {
            read = from_client.read(&mut said) => {
                let Ok(length @ 1..) = read else { return };
                if silent.load(Ordering::SeqCst) {
                    return std::future::pending().await;
                }
                // The marker may come in two pieces.
                tail.extend_from_slice(&said[..length]);
                is_marked |= tail.windows(marker.len()).any(|window| window == marker);
                tail.drain(..tail.len().saturating_sub(marker.len()));
                if to_server.write_all(&said[..length]).await.is_err() {
                    return;
                }
            }
            read = from_server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if silent.load(Ordering::SeqCst) {
                    return std::future::pending().await;
                }
                if is_marked {
                    cuts.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                tokio::time::sleep(Duration::from_secs_f64(length as f64 / bytes_per_second.load(Ordering::SeqCst) as f64)).await;
                if to_client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
