//! One connection to a service: sends a prepared request, and returns a status and a body.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::wire;

/// A request without an answer after this time has failed.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
const BUFFER_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Sends `request` and waits for the complete answer.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        let exchange = tokio::time::timeout(ANSWER_TIME_MAX, self.exchange_however_long(request)).await;
        let extent = exchange.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let status = wire::status(&self.buffer).ok_or_else(|| io::Error::other("what answers does not speak HTTP/1.1"))?;
        Ok(Answer { status, body: &self.buffer[extent.head_bytes..extent.bytes()] })
    }

    async fn exchange_however_long(&mut self, request: &[u8]) -> io::Result<wire::Extent> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut known = None;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if known.is_none() {
                known = wire::extent(&self.buffer).map_err(io::Error::other)?;
            }
            match known {
                Some(extent) if self.buffer.len() >= extent.bytes() => return Ok(extent),
                Some(extent) => self.buffer.reserve(extent.bytes() - self.buffer.len()),
                None => self.buffer.reserve(BUFFER_BYTES / 2),
            }
        }
    }
}
