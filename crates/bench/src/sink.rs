//! The receiver of all calls: records which timer was called and when, and answers 200.
//!
//! It has a thread of its own, so that the time of an arrival does not depend on what the load client is doing.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use domain::Clock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

use crate::{ledger::Ledger, wire};

const BUFFER_BYTES: usize = 16 * 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Listens from [`Sink::start`] until it is dropped.
#[derive(Debug)]
pub struct Sink {
    addresses: Vec<SocketAddr>,
    origins: Vec<String>,
    current: Arc<Current>,
    slow: Arc<Slow>,
    slow_origin: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The receiver that takes its time.
#[derive(Debug, Default)]
struct Slow {
    pause_micros: AtomicU64,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

impl Slow {
    async fn hold(&self, calls: usize) {
        let calls = calls as u64;
        let in_flight = self.in_flight.fetch_add(calls, Ordering::Relaxed) + calls;
        self.in_flight_max.fetch_max(in_flight, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_micros(self.pause_micros.load(Ordering::Relaxed))).await;
        self.in_flight.fetch_sub(calls, Ordering::Relaxed);
    }
}

/// The ledger of the current round.
#[derive(Debug)]
struct Current(Mutex<Arc<Ledger>>);

impl Current {
    fn get(&self) -> Arc<Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, ledger: Arc<Ledger>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ledger;
    }
}

impl Sink {
    /// Opens `destinations` ports at `host`, and one for the slow receiver. Each port is an origin, and so a destination, of its
    /// own.
    pub fn start(host: IpAddr, destinations: usize, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners = (0..destinations).map(|_| listen(host)).collect::<io::Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let slow_listener = listen(host)?;
        let slow_origin = format!("http://{}", slow_listener.local_addr()?);
        let slow = Arc::new(Slow::default());
        let origins = addresses.iter().map(|address| format!("http://{address}")).collect();
        let current = Arc::new(Current(Mutex::new(Arc::new(Ledger::new(0, 0)))));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("sink".to_owned()).spawn({
            let (current, slow) = (current.clone(), slow.clone());
            move || {
                for listener in listeners {
                    runtime.spawn(accept(listener, Receiver { current: current.clone(), slow: None, clock: clock.clone() }));
                }
                runtime.spawn(accept(slow_listener, Receiver { current, slow: Some(slow), clock }));
                // A dropped sender means the same as a message.
                let _ = runtime.block_on(stopped);
            }
        })?;
        Ok(Self { addresses, origins, current, slow, slow_origin, stop: Some(stop), thread: Some(thread) })
    }

    /// The URLs on which it listens, such as `http://127.0.0.1:40001`.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// The address of the first origin.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.first().copied()
    }

    /// The URL of the receiver that takes its time.
    pub fn slow_origin(&self) -> &str {
        &self.slow_origin
    }

    /// From now on the slow receiver takes `pause` for each call, and counts anew.
    pub fn slow_down(&self, pause: Duration) {
        self.slow.pause_micros.store(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.slow.in_flight_max.store(0, Ordering::Relaxed);
    }

    /// How many calls the slow receiver has under way.
    pub fn slow_in_flight(&self) -> u64 {
        self.slow.in_flight.load(Ordering::Relaxed)
    }

    /// The most calls that the slow receiver had under way at once.
    pub fn slow_in_flight_max(&self) -> u64 {
        self.slow.in_flight_max.load(Ordering::Relaxed)
    }

    /// From now on, arrivals are recorded in `ledger`.
    pub fn note_in(&self, ledger: Arc<Ledger>) {
        self.current.set(ledger);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn listen(host: IpAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((host, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// What a connection of one origin needs.
#[derive(Clone)]
struct Receiver {
    current: Arc<Current>,
    slow: Option<Arc<Slow>>,
    clock: Arc<dyn Clock>,
}

async fn accept(listener: TcpListener, receiver: Receiver) {
    // The listener was made outside of the runtime, and is registered with it here.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, receiver.clone()))),
            // The usual cause is too many open files, and some are about to be closed.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Reads calls until the client closes the connection, or sends what cannot be parsed.
async fn serve(mut stream: TcpStream, receiver: Receiver) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        match stream.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let at = receiver.clock.now().as_micros();
        let Some((calls, taken)) = take(&buffer, &receiver.current, at) else { return };
        buffer.drain(..taken);
        buffer.reserve(BUFFER_BYTES / 2);
        if let Some(slow) = receiver.slow.as_ref().filter(|_| calls > 0) {
            slow.hold(calls).await;
        }
        for _ in 0..calls {
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
        }
    }
}

/// Records every complete call in `buffer`: returns how many they were, and how many bytes. `None` for what is not a call.
fn take(buffer: &[u8], current: &Current, at: i64) -> Option<(usize, usize)> {
    let (mut calls, mut taken) = (0, 0);
    loop {
        let rest = &buffer[taken..];
        match wire::extent(rest).ok()? {
            Some(extent) if rest.len() >= extent.bytes() => {
                let (round, number) = wire::hook(rest)?;
                current.get().note(round, number, at);
                taken += extent.bytes();
                calls += 1;
            }
            _ => return Some((calls, taken)),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{ManualClock, Timestamp};

    use super::*;
    use crate::{client::Connection, requests};

    #[tokio::test]
    async fn calls_are_noted_at_the_time_of_the_clock_and_answered() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000)));
        let sink = Sink::start(IpAddr::from([127, 0, 0, 1]), 2, clock.clone()).unwrap();
        assert_eq!(sink.origins().len(), 2);
        let ledger = Arc::new(Ledger::new(7, 10));
        sink.note_in(ledger.clone());
        let mut connection = Connection::open(sink.address().unwrap()).await.unwrap();
        for (number, at) in [(3, 1_000), (4, 2_500)] {
            clock.set(Timestamp::from_micros(at));
            let mut request = Vec::new();
            requests::call("x", 7, number, &mut request);
            assert_eq!(connection.exchange(&request).await.unwrap().status, 200);
            assert_eq!(ledger.first_at(number), Some(at));
        }
        assert_eq!(ledger.arrived(), 2);
    }

    #[tokio::test]
    async fn the_slow_receiver_counts_the_calls_that_it_has_under_way() {
        let sink = Sink::start(IpAddr::from([127, 0, 0, 1]), 1, Arc::new(ManualClock::at(Timestamp::from_micros(1)))).unwrap();
        sink.slow_down(Duration::from_millis(100));
        let ledger = Arc::new(Ledger::new(7, 3));
        sink.note_in(ledger.clone());
        let address: SocketAddr = sink.slow_origin().strip_prefix("http://").unwrap().parse().unwrap();
        let calls: Vec<_> = (0..3)
            .map(|number| {
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    requests::call("x", 7, number, &mut request);
                    Connection::open(address).await.unwrap().exchange(&request).await.unwrap().status
                })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), 200);
        }
        assert_eq!(ledger.arrived(), 3);
        assert!((1..=3).contains(&sink.slow_in_flight_max()));
    }

    #[tokio::test]
    async fn what_is_no_call_ends_the_connection() {
        let sink = Sink::start(IpAddr::from([127, 0, 0, 1]), 1, Arc::new(ManualClock::at(Timestamp::from_micros(0)))).unwrap();
        let mut connection = Connection::open(sink.address().unwrap()).await.unwrap();
        connection.exchange(b"GET / HTTP/1.1\r\n\r\n").await.unwrap_err();
    }

    #[test]
    fn several_calls_of_one_read_are_all_taken_and_the_rest_is_left() {
        let current = Current(Mutex::new(Arc::new(Ledger::new(7, 10))));
        let (mut buffer, mut call) = (Vec::new(), Vec::new());
        for number in 0..3 {
            requests::call("x", 7, number, &mut call);
            buffer.extend_from_slice(&call);
        }
        let whole = buffer.len();
        buffer.extend_from_slice(&call[..call.len() - 1]);
        assert_eq!(take(&buffer, &current, 5), Some((3, whole)));
        assert_eq!(current.get().arrived(), 3);
    }
}
