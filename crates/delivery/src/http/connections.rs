//! The connection pool: connections are dialled when no idle one is left, and stay idle for a while after a call.
//!
//! ```text
//!   call ──▶ an idle one that is still open, or a new one with a permit ──▶ request out, answer in ──▶ idle again, if it can take another call
//! ```
//!
//! A connection has no task of its own: the call that uses it drives it, so that a call wakes no other task.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Poll,
    time::Duration,
};

use ::http::{Request, Response, Uri};
use bytes::Bytes;
use domain::TenantId;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    ANSWER_HEAD_BYTES_MAX,
    connect::{ConnectError, Connector},
    connect_limiter::{ConnectLimiter, ConnectPermit},
    intake::{self, Meter, Metered},
    lookups::{Begun, Congested},
    origin::Origin,
};

/// How long a connection may wait for its next call. Shorter than the usual servers wait (2 to 75 seconds): a call that is
/// written while the receiver closes the connection fails, and must not be repeated, since it may have arrived.
const IDLE_MAX: Duration = Duration::from_millis(1500);
/// How many connections may be idle, for all receivers together.
const IDLE_CONNECTIONS_MAX: usize = 2048;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error("no answer in time")]
    Late,
}

pub(super) struct Connections {
    connector: Connector,
    idle: Arc<IdlePool>,
    idle_max: usize,
    connect_limiter: ConnectLimiter,
}

/// What the connection pool gives a call that is about to be made.
pub(super) enum Checkout {
    /// An idle connection to the receiver.
    Idle(IdleConnection),
    /// The permit to dial a new connection. The host name of the receiver is being looked up already, unless it is an address.
    New(ConnectPermit, Option<Begun>),
    /// No connection: the host name could not be looked up, because too many lookups are under way.
    Congested,
}

/// The head of an answer, and what the rest of it comes over.
pub(super) struct Answered {
    pub response: Response<Incoming>,
    pub connection: Box<Connection>,
    /// When all of it must be in.
    pub deadline: Instant,
}

impl Connections {
    pub fn new(connector: Connector) -> Self {
        Self { connector, idle: Arc::default(), idle_max: IDLE_CONNECTIONS_MAX, connect_limiter: ConnectLimiter::default() }
    }

    /// The same, with at most `idle_max` idle connections, and never more than `IDLE_CONNECTIONS_MAX`.
    pub fn keeping(mut self, idle_max: Option<usize>) -> Self {
        self.idle_max = idle_max.map_or(IDLE_CONNECTIONS_MAX, |max| max.min(IDLE_CONNECTIONS_MAX));
        self
    }

    /// Waits until a call can be sent to `place`.
    pub async fn checkout(&self, place: &Uri, tenant: TenantId) -> Checkout {
        let origin = Origin::of(place);
        if let Some(idle) = self.idle.take(&origin) {
            return Checkout::Idle(idle);
        }
        // With its permit a connection is dialled at once: those that wait for one name would otherwise all be dialled together.
        let Ok(lookup) = self.connector.look_ahead(place, tenant).await else { return Checkout::Congested };
        let permit = self.connect_limiter.permit(&origin).await;
        // Meanwhile another call may have ended, and its connection serves as well as a new one.
        self.idle.take(&origin).map_or(Checkout::New(permit, lookup), Checkout::Idle)
    }

    /// Sends `request` to the receiver at `place`, which has `time` to answer. The answer is only as far in as its head:
    /// the rest comes while the caller [`drive`](Connection::drive)s the connection.
    pub async fn send(
        &self,
        place: &Uri,
        tenant: TenantId,
        mut checkout: Checkout,
        mut request: Request<Full<Bytes>>,
        time: Duration,
    ) -> Result<Answered, CallError> {
        loop {
            let deadline = Instant::now() + time;
            match checkout {
                // Rare and large, which every call would have to carry along.
                Checkout::New(permit, lookup) => {
                    return Box::pin(self.send_first(place, permit, lookup, request, deadline)).await;
                }
                Checkout::Congested => return Err(ConnectError::from(Congested).into()),
                Checkout::Idle(idle) if idle.is_old() => {}
                Checkout::Idle(IdleConnection { mut connection, .. }) => {
                    match timeout_at(deadline, connection.exchange(request)).await {
                        Err(_) => return Err(CallError::Late),
                        Ok(Ok(response)) => return Ok(Answered { response, connection, deadline }),
                        // The receiver had closed it, and nothing was sent: that is no attempt.
                        Ok(Err(mut error)) => match error.take_message() {
                            Some(unsent) => request = unsent,
                            None => return Err(error.into_error().into()),
                        },
                    }
                }
            }
            checkout = self.checkout(place, tenant).await;
        }
    }

    async fn send_first(
        &self,
        place: &Uri,
        permit: ConnectPermit,
        lookup: Option<Begun>,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Answered, CallError> {
        let first_call = async {
            let mut connection = self.dial(place, lookup).await?;
            let response = connection.exchange(request).await.map_err(TrySendError::into_error)?;
            Ok(Answered { response, connection, deadline })
        };
        timeout_at(deadline, permit.spend(first_call)).await.unwrap_or(Err(CallError::Late))
    }

    /// Keeps a connection for the next call, if it can take one.
    pub async fn keep(&self, mut connection: Box<Connection>) {
        connection.poll_once().await;
        if connection.is_free() {
            self.idle.put(connection, self.idle_max);
        }
    }

    async fn dial(&self, place: &Uri, lookup: Option<Begun>) -> Result<Box<Connection>, CallError> {
        let stream = self.connector.connect(place.clone(), lookup).await.inspect_err(|error| {
            // What idle connections hold is better used.
            if matches!(error, ConnectError::Short(_)) {
                self.idle.close_all();
            }
        })?;
        let meter = intake::meter(&stream);
        let (sender, driver) = http1::Builder::new().max_buf_size(ANSWER_HEAD_BYTES_MAX).handshake(stream).await?;
        Ok(Box::new(Connection { origin: Origin::of(place), sender, driver: Some(driver), meter }))
    }
}

/// One connection, which makes progress only while it is driven.
pub(super) struct Connection {
    origin: Origin,
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once the connection is over. It must go then: a request that it has not sent comes back only when it is dropped.
    driver: Option<http1::Connection<MaybeHttpsStream<TokioIo<Metered>>, Full<Bytes>>>,
    meter: Arc<Meter>,
}

impl Connection {
    async fn exchange(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        self.meter.reset();
        let meter = Arc::clone(&self.meter);
        hyper::ext::on_informational(&mut request, move |_| meter.interim());
        let answer = self.sender.try_send_request(request);
        let answer = self.drive(answer).await?;
        self.meter.head_is_in();
        Ok(answer)
    }

    /// Does `work` that waits for what comes over this connection.
    pub async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let done = work.as_mut().poll(cx);
            let Some(driver) = self.driver.as_mut().filter(|_| done.is_pending()) else { return done };
            // How it ended, the work learns from its own side.
            if Pin::new(driver).poll(cx).is_ready() {
                self.driver = None;
            }
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Takes notice of what has happened meanwhile.
    async fn poll_once(&mut self) {
        let mut looked = false;
        let once = poll_fn(|_| if std::mem::replace(&mut looked, true) { Poll::Ready(()) } else { Poll::Pending });
        self.drive(once).await;
    }

    fn is_free(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Connections that wait for their next call.
#[derive(Default)]
struct IdlePool(Mutex<IdleConnections>);

#[derive(Default)]
struct IdleConnections {
    waiting: HashMap<Origin, Vec<IdleConnection>>,
    count: usize,
    is_watched: bool,
}

/// A connection that waits, and since when.
pub(super) struct IdleConnection {
    connection: Box<Connection>,
    since: Instant,
}

impl IdleConnection {
    fn is_old(&self) -> bool {
        self.since.elapsed() > IDLE_MAX
    }
}

impl IdlePool {
    fn idle_connections(&self) -> MutexGuard<'_, IdleConnections> {
        // Whatever a panic left undone, each connection is looked at before it is used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that was used last, so that those that are not needed get old.
    fn take(&self, origin: &Origin) -> Option<IdleConnection> {
        let mut idle_connections = self.idle_connections();
        let last = idle_connections.waiting.get_mut(origin)?.pop()?;
        idle_connections.count -= 1;
        Some(last).filter(|last| !last.is_old())
    }

    fn put(self: &Arc<Self>, connection: Box<Connection>, idle_max: usize) {
        let mut idle_connections = self.idle_connections();
        if idle_connections.count >= idle_max {
            return;
        }
        idle_connections.count += 1;
        let waiting = IdleConnection { since: Instant::now(), connection };
        match idle_connections.waiting.get_mut(&waiting.connection.origin) {
            Some(idle) => idle.push(waiting),
            None => _ = idle_connections.waiting.insert(waiting.connection.origin.clone(), vec![waiting]),
        }
        if !std::mem::replace(&mut idle_connections.is_watched, true) {
            tokio::spawn(close_in_time(Arc::downgrade(self)));
        }
    }

    fn close_all(&self) {
        let mut idle_connections = self.idle_connections();
        idle_connections.waiting.clear();
        idle_connections.count = 0;
    }

    /// Closes what has waited for too long; whether any are left.
    fn close_old(&self) -> bool {
        let now = Instant::now();
        let mut idle_connections = self.idle_connections();
        for waiting in idle_connections.waiting.values_mut() {
            waiting.retain(|waiting| now - waiting.since < IDLE_MAX);
        }
        idle_connections.waiting.retain(|_, waiting| !waiting.is_empty());
        idle_connections.count = idle_connections.waiting.values().map(Vec::len).sum();
        idle_connections.is_watched = idle_connections.count > 0;
        idle_connections.is_watched
    }
}

/// Closes the connections to receivers that are not called again.
async fn close_in_time(idle: Weak<IdlePool>) {
    loop {
        sleep(IDLE_MAX).await;
        if !idle.upgrade().is_some_and(|idle| idle.close_old()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
