//! Stands between the socket and the HTTP implementation: hands on one checked head at a time and exactly the body it announced,
//! and keeps the time.
//!
//! ```text
//!   Idle ──first byte──▶ Head ──whole and right──▶ Handing ──▶ Body ──answered, body read──▶ Idle
//!    │ idle_time_max,     │ head_time_max: 408
//!    │ or asked to leave  │ not right: 400, 414, 431
//!    ▼ closed             ▼ asked to leave: closed
//! ```
//!
//! While a request is being answered nothing is read: a second one waits in the socket, and a client that goes away does not
//! cancel what it asked for. Pipelined requests are so answered in their order: the head-of-line blocking that HTTP/1.1 has on one
//! connection, and that no other connection notices.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::io::poll_read_buf;

use super::head::{self, BodyLength, Scan};
use crate::{BasePath, Limits, dialect::ApiDialect, error::ApiError};

const READ_BYTES: usize = 4 * 1024;

/// Whether a request is being answered: said by the service, heeded by the strict reader. And whether the connection must leave for
/// another one when none is.
#[derive(Default)]
pub(super) struct RequestInFlight {
    is_on: AtomicBool,
    /// From the arrival of a request until the next one is waited for: longer than it is on, by the writing of its answer.
    is_busy: AtomicBool,
    must_leave: AtomicBool,
    reader: AtomicWaker,
}

impl RequestInFlight {
    pub(super) fn begin(&self) {
        self.is_on.store(true, Ordering::Release);
        self.is_busy.store(true, Ordering::Release);
    }

    /// Whether the next request has not yet arrived whole, and the answer to the last one is written.
    pub(super) fn is_waiting(&self) -> bool {
        !self.is_busy.load(Ordering::Acquire)
    }

    /// The connection is closed as soon as it waits for a request.
    pub(super) fn ask_to_leave(&self) {
        self.must_leave.store(true, Ordering::Release);
        self.reader.wake();
    }

    pub(super) fn must_leave(&self) -> bool {
        self.must_leave.load(Ordering::Acquire)
    }

    /// Waits. Whether it must leave now; else the task is woken when it must.
    fn poll_leave(&self, cx: &Context<'_>) -> bool {
        self.reader.register(cx.waker());
        self.is_busy.store(false, Ordering::Release);
        self.must_leave()
    }

    /// Works until the end of the work, or until the connection must leave.
    pub(super) async fn stay_for(&self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        poll_fn(|cx| if self.poll_leave(cx) { Poll::Ready(()) } else { work.as_mut().poll(cx) }).await;
    }

    pub(super) fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        self.reader.wake();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    Head,
    /// This much of a checked head is still to be handed on.
    Handing(usize, BodyLength),
    Body(BodyLength),
}

pub(super) struct StrictReader {
    socket: TcpStream,
    limits: Limits,
    in_flight: Arc<RequestInFlight>,
    base_path: BasePath,
    stage: Stage,
    /// Bytes that were read and not handed on.
    held: BytesMut,
    /// How many of them were looked at already.
    seen: usize,
    deadline: Deadline,
    write_deadline: Deadline,
    fault: Option<Fault>,
}

/// Why a request was refused, and in which dialect.
pub(super) struct Fault {
    pub dialect: ApiDialect,
    pub error: ApiError,
}

impl StrictReader {
    pub(super) fn new(socket: TcpStream, limits: Limits, in_flight: Arc<RequestInFlight>, base_path: BasePath) -> Self {
        Self {
            socket,
            limits,
            in_flight,
            base_path,
            stage: Stage::Idle,
            held: BytesMut::new(),
            seen: 0,
            deadline: Deadline::default(),
            write_deadline: Deadline::default(),
            fault: None,
        }
    }

    /// The socket, and why a request was refused if one was.
    pub(super) fn into_parts(self) -> (TcpStream, Option<Fault>) {
        (self.socket, self.fault)
    }

    fn refuse(&mut self, error: ApiError) -> io::Error {
        self.fault = Some(Fault { dialect: ApiDialect::of_head(&self.held, &self.base_path), error });
        io::Error::new(io::ErrorKind::InvalidData, "the request was refused")
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.deadline.rest();
    }

    /// Reads more into what is held. `false` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.held.reserve(READ_BYTES);
        let count = ready!(poll_read_buf(Pin::new(&mut self.socket), cx, &mut self.held))?;
        Poll::Ready(Ok(count > 0))
    }

    /// Waits for the first byte of the next request. `false` when there will be none.
    fn poll_first_byte(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            // Some clients send an empty line after a body.
            while self.held.starts_with(b"\r\n") {
                self.held.advance(2);
            }
            if !self.held.is_empty() && &self.held[..] != b"\r" {
                return Poll::Ready(Ok(true));
            }
            match self.poll_fill(cx)? {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(false)),
                Poll::Pending if self.in_flight.poll_leave(cx) => return Poll::Ready(Ok(false)),
                Poll::Pending => {
                    ready!(self.deadline.poll_end(cx, self.limits.idle_time_max));
                    return Poll::Ready(Ok(false));
                }
            }
        }
    }

    /// Waits for the rest of a head, and checks it. `false` when the client went away half-way.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            match head::scan(&self.held, &mut self.seen, &self.limits) {
                Ok(Scan::Whole { bytes, body }) => {
                    self.seen = 0;
                    self.enter(Stage::Handing(bytes, body));
                    return Poll::Ready(Ok(true));
                }
                Ok(Scan::Incomplete) => {}
                Err(error) => return Poll::Ready(Err(self.refuse(error))),
            }
            match self.poll_fill(cx)? {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(false)),
                Poll::Pending if self.in_flight.poll_leave(cx) => return Poll::Ready(Ok(false)),
                Poll::Pending => {
                    ready!(self.deadline.poll_end(cx, self.limits.head_time_max));
                    return Poll::Ready(Err(self.refuse(ApiError::HeadTooSlow)));
                }
            }
        }
    }

    /// Moves up to `max` held bytes into `buffer`; how many.
    fn hand_on(&mut self, buffer: &mut ReadBuf<'_>, max: usize) -> usize {
        let count = max.min(self.held.len()).min(buffer.remaining());
        buffer.put_slice(&self.held[..count]);
        self.held.advance(count);
        count
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>, left: u64) -> Poll<io::Result<u64>> {
        let max = usize::try_from(left).unwrap_or(usize::MAX);
        if !self.held.is_empty() {
            return Poll::Ready(Ok(self.hand_on(buffer, max) as u64));
        }
        if max >= buffer.remaining() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
            return Poll::Ready(Ok((buffer.filled().len() - before) as u64));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(max));
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut part))?;
        let count = part.filled().len();
        buffer.advance(count);
        Poll::Ready(Ok(count as u64))
    }
}

impl AsyncRead for StrictReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.stage {
                Stage::Idle => {
                    if !ready!(self.poll_first_byte(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                    self.enter(Stage::Head);
                }
                Stage::Head => {
                    if !ready!(self.poll_head(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                Stage::Handing(left, body) => {
                    let count = self.hand_on(buffer, left);
                    self.stage = Stage::Handing(left - count, body);
                    if count == left {
                        self.in_flight.begin();
                        self.stage = Stage::Body(body);
                    }
                    return Poll::Ready(Ok(()));
                }
                Stage::Body(BodyLength::Known(0)) => {
                    self.in_flight.reader.register(cx.waker());
                    if self.in_flight.is_on.load(Ordering::Acquire) {
                        return Poll::Pending;
                    }
                    self.enter(Stage::Idle);
                }
                Stage::Body(BodyLength::Known(left)) => {
                    let count = ready!(self.poll_body(cx, buffer, left))?;
                    self.stage = Stage::Body(BodyLength::Known(left - count));
                    return Poll::Ready(Ok(()));
                }
                // Where it ends is known only to the one who reads it; the connection ends with it.
                Stage::Body(BodyLength::Chunked) => {
                    ready!(self.poll_body(cx, buffer, u64::MAX))?;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for StrictReader {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.watch_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.watch_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl StrictReader {
    /// A client that takes nothing of its answer for too long has lost it.
    fn watch_write(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write_deadline.rest();
            return written;
        }
        ready!(self.write_deadline.poll_end(cx, self.limits.write_stall_max));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Measures one wait at a time, from when it began to be one.
#[derive(Default)]
struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// When the wait that is on has taken as long as it may.
    until: Option<Instant>,
}

impl Deadline {
    /// The wait is over: the next one begins anew.
    const fn rest(&mut self) {
        self.until = None;
    }

    /// Ready when the wait has taken as long as it may. Waits are many and hardly one comes to that, so that the timer is left where an
    /// earlier wait has set it: being woken too early once in a while costs less than to set it anew for each.
    fn poll_end(&mut self, cx: &mut Context<'_>, time_max: Duration) -> Poll<()> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + time_max);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() > until {
            timer.as_mut().reset(until);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() == until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }
}
