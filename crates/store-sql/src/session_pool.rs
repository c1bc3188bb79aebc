//! A few sessions with the database, opened when they are wanted and kept for the next call.
//!
//! sqlx has a pool as well, but that one pings every session whenever it is given back: a second round trip for each call, which
//! wakes a process of the server for nothing.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{Backoff, Cause};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::{Driver, NoSession};

const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
pub const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// A session that was used a moment ago is taken to be alive; asking it costs a round trip.
const IDLE_UNTESTED_MAX: Duration = Duration::from_millis(500);
/// The time after which a session that no call needed is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// The server keeps more and more for a session that lives on.
const AGE_MAX: Duration = Duration::from_secs(1_800);
/// How long to wait before a server that cannot take sessions yet is asked again.
const CONNECT_BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

#[derive(Debug)]
pub struct SessionPool<D: Driver> {
    driver: D,
    /// One for each session that may be open.
    permits: Arc<Semaphore>,
    /// The one that was used last is on top.
    idle: Mutex<Vec<Idle<D::Session>>>,
    last_break: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Idle<Connection> {
    connection: Connection,
    opened: Instant,
    since: Instant,
}

/// A session in use. One that is dropped is closed, and its permit is free for another.
#[derive(Debug)]
pub struct Session<Connection> {
    pub connection: Connection,
    opened: Instant,
    permit: OwnedSemaphorePermit,
}

impl<D: Driver> SessionPool<D> {
    /// Opens none yet.
    pub fn new(driver: D, sessions_max: usize) -> Self {
        Self {
            driver,
            permits: Arc::new(Semaphore::new(sessions_max)),
            idle: Mutex::new(Vec::with_capacity(sessions_max)),
            last_break: Mutex::new(None),
        }
    }

    /// One that is alive, as far as can be known, within [`ACQUIRE_TIMEOUT`].
    pub async fn acquire(&self) -> Result<Session<D::Session>, NoSession> {
        let too_late = || no_session(format!("no connection to {} became free or could be made in time", D::SERVER));
        timeout(ACQUIRE_TIMEOUT, self.take_or_open()).await.unwrap_or_else(|_| Err(too_late()))
    }

    async fn take_or_open(&self) -> Result<Session<D::Session>, NoSession> {
        let closed = |_| no_session("attempted to acquire a connection on a closed pool");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        while let Some(Idle { mut connection, opened, since }) = self.pop() {
            if !self.is_suspect(since) || answers::<D>(&mut connection).await {
                return Ok(Session { connection, opened, permit });
            }
        }
        let connection = self.open().await?;
        Ok(Session { connection, opened: Instant::now(), permit })
    }

    /// A server that is just starting is waited for.
    async fn open(&self) -> Result<D::Session, NoSession> {
        let mut backoff = CONNECT_BACKOFF;
        loop {
            match self.driver.open().await {
                Err(refused) if refused.is_passing => sleep(backoff.failed()).await,
                opened => return opened,
            }
        }
    }

    /// Keeps it for the next one. Nothing may be left unread or undone on it.
    pub fn put_back(&self, Session { connection, opened, permit }: Session<D::Session>) {
        let now = Instant::now();
        {
            let mut idle = self.idle();
            idle.retain(|idle| now - idle.since < IDLE_MAX);
            if now - opened < AGE_MAX && !self.permits.is_closed() {
                idle.push(Idle { connection, opened, since: now });
            }
        }
        // Only now: the next call shall find it.
        drop(permit);
    }

    /// A session broke: those that were idle at that moment have probably broken too.
    pub fn note_break(&self) {
        *self.last_break.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Closes those that are idle; from now on there are none to be had.
    pub async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for Idle { connection, .. } in idle {
            D::close(connection).await;
        }
    }

    fn is_suspect(&self, idle_since: Instant) -> bool {
        let last_break = *self.last_break.lock().unwrap_or_else(PoisonError::into_inner);
        idle_since.elapsed() > IDLE_UNTESTED_MAX || last_break.is_some_and(|broke| broke >= idle_since)
    }

    fn pop(&self) -> Option<Idle<D::Session>> {
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle<D::Session>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the server answers on this session, and soon.
pub async fn answers<D: Driver>(session: &mut D::Session) -> bool {
    timeout(PING_TIMEOUT, D::answers(session)).await.unwrap_or(false)
}

fn no_session(cause: impl Into<Cause>) -> NoSession {
    NoSession { cause: cause.into(), is_passing: false }
}
