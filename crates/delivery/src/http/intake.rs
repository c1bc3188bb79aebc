//! How much a connection takes in: before the head of an answer is there, and at a time.
//!
//! Every connection is read on the thread that fires all timers. A receiver that sends without end would hold it: interim responses
//! (1xx) precede the head of the answer, as many as the receiver likes, and a reader that always finds more never waits.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use hyper_rustls::MaybeHttpsStream;
use hyper_util::{client::legacy, rt::TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::ANSWER_HEAD_BYTES_MAX;

/// How many interim responses may precede an answer.
pub(super) const INTERIM_MAX: usize = 8;
/// What may come in until the head of an answer is there: interim responses, the head itself, and what was read along with it.
pub(super) const UNTIL_HEAD_BYTES_MAX: usize = 4 * ANSWER_HEAD_BYTES_MAX;
/// The number of bytes after which a connection yields to other work. A read under way may bring some more.
const SLICE_BYTES: usize = 16 * 1024;

/// A receiver sends more than is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("sent more than {INTERIM_MAX} interim responses")]
    Interim,
    #[error("sent more than {UNTIL_HEAD_BYTES_MAX} bytes before the head of its answer had ended")]
    Bytes,
}

/// What has come in since an exchange began.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicUsize,
    interim: AtomicUsize,
    is_head_in: AtomicBool,
}

impl Meter {
    /// The next answer is waited for.
    pub fn reset(&self) {
        self.bytes.store(0, Relaxed);
        self.interim.store(0, Relaxed);
        self.is_head_in.store(false, Relaxed);
    }

    pub fn interim(&self) {
        self.interim.fetch_add(1, Relaxed);
    }

    /// From now on it is the body that comes, which has limits of its own.
    pub fn head_is_in(&self) {
        self.is_head_in.store(true, Relaxed);
    }

    fn excess(&self) -> Option<Excess> {
        if self.is_head_in.load(Relaxed) {
            None
        } else if self.interim.load(Relaxed) > INTERIM_MAX {
            Some(Excess::Interim)
        } else {
            (self.bytes.load(Relaxed) > UNTIL_HEAD_BYTES_MAX).then_some(Excess::Bytes)
        }
    }
}

/// A connection that is read in slices, within its limits.
#[derive(Debug)]
pub(super) struct Metered {
    stream: TcpStream,
    meter: Arc<Meter>,
    slice_bytes: usize,
}

impl Metered {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, meter: Arc::default(), slice_bytes: 0 }
    }
}

/// The meter of a connection, encrypted or not.
pub(super) fn meter(stream: &MaybeHttpsStream<TokioIo<Metered>>) -> Arc<Meter> {
    let metered = match stream {
        MaybeHttpsStream::Http(plain) => plain.inner(),
        MaybeHttpsStream::Https(encrypted) => encrypted.inner().get_ref().0.inner().inner(),
    };
    Arc::clone(&metered.meter)
}

impl legacy::connect::Connection for Metered {
    fn connected(&self) -> legacy::connect::Connected {
        self.stream.connected()
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(excess) = self.meter.excess() {
            return Poll::Ready(Err(io::Error::other(excess)));
        }
        if self.slice_bytes >= SLICE_BYTES {
            self.slice_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let bytes = buf.filled().len() - before;
        self.slice_bytes += bytes;
        self.meter.bytes.fetch_add(bytes, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
