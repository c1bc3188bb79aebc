//! A way to the shared server that breaks the connection of the next batch, once it is told to.
//!
//! The driver asks the cluster for the addresses of its nodes and takes the port of its contact point for all of them, so that with one
//! node on 127.0.0.1 all of its connections come through here.

use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use store_cassandra::CassandraOptions;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::apart;

/// Version, flags, two bytes of the stream, opcode, four bytes of the length of what follows.
const HEADER_BYTES: usize = 9;
const OPCODE: usize = 4;
const BATCH: u8 = 0x0d;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    BeforeTheWrite,
    AfterTheWrite,
}

pub struct Proxy {
    pub options: CassandraOptions,
    next: Arc<Mutex<Option<Cut>>>,
}

impl Proxy {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut options = apart::options();
        let through = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let server = std::mem::replace(&mut options.contact_points, vec![through]).remove(0);
        let next = Arc::new(Mutex::new(None));
        tokio::spawn(accept(listener, server, Arc::clone(&next)));
        Self { options, next }
    }

    pub fn cut(&self, cut: Cut) {
        *self.next.lock().unwrap() = Some(cut);
    }

    /// Whether no batch has come since it was told to cut.
    pub fn is_armed(&self) -> bool {
        self.next.lock().unwrap().is_some()
    }
}

async fn accept(listener: TcpListener, server: String, next: Arc<Mutex<Option<Cut>>>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, next) = (server.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            let server = TcpStream::connect(server).await.unwrap();
            // Either end may break the connection; that is all there is to it.
            drop(pass(client, server, &next).await);
        });
    }
}

/// Passes on the frames of both ends, until one of them breaks the connection or it is cut.
async fn pass(client: TcpStream, server: TcpStream, next: &Mutex<Option<Cut>>) -> io::Result<()> {
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // The stream of the batch whose answer gets lost.
    let lost: Mutex<Option<[u8; 2]>> = Mutex::new(None);
    let ends_before = |frame: &[u8]| {
        let cut = if frame[OPCODE] == BATCH { next.lock().unwrap().take() } else { None };
        if cut == Some(Cut::AfterTheWrite) {
            *lost.lock().unwrap() = Some(stream(frame));
        }
        cut == Some(Cut::BeforeTheWrite)
    };
    let is_lost = |frame: &[u8]| *lost.lock().unwrap() == Some(stream(frame));
    tokio::select! {
        ended = pass_on(from_client, to_server, ends_before) => ended,
        ended = pass_on(from_server, to_client, is_lost) => ended,
    }
}

/// One direction, up to the first frame that must not pass.
async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_the_end: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    loop {
        let frame = frame(&mut from).await?;
        if is_the_end(&frame) {
            return Ok(());
        }
        to.write_all(&frame).await?;
    }
}

async fn frame(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_BYTES];
    from.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]);
    frame.resize(HEADER_BYTES + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut frame[HEADER_BYTES..]).await?;
    Ok(frame)
}

/// By it a question and its answer are told apart from others that are under way.
fn stream(frame: &[u8]) -> [u8; 2] {
    [frame[2], frame[3]]
}
