//! A few sessions with the database, opened when they are wanted and kept for the next call.
//!
//! The driver has a pool as well, but that one asks every session for a sign of life whenever it is given back: a second round
//! trip for each call, which wakes a process of the server for nothing.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
pub const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// A session that was used a moment ago is taken to be alive; asking it costs a round trip.
const IDLE_UNTESTED_MAX: Duration = Duration::from_millis(500);
/// What nobody needed for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// The server keeps more and more for a session that lives on.
const AGE_MAX: Duration = Duration::from_secs(1_800);
/// How long to wait before a server that cannot take sessions yet is asked again.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);
const CONNECT_PAUSE_MAX: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct SessionPool {
    options: PgConnectOptions,
    turns: Arc<Semaphore>,
    /// The one that was used last is on top.
    idle: Mutex<Vec<Idle>>,
    last_break: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Idle {
    session: PgConnection,
    opened: Instant,
    since: Instant,
}

/// A session in use. One that is dropped is closed, and makes room for another.
#[derive(Debug)]
pub struct Session {
    pub connection: PgConnection,
    opened: Instant,
    turn: OwnedSemaphorePermit,
}

impl SessionPool {
    /// Opens none yet.
    pub fn new(options: PgConnectOptions, sessions_max: usize) -> Self {
        Self {
            options,
            turns: Arc::new(Semaphore::new(sessions_max)),
            idle: Mutex::new(Vec::with_capacity(sessions_max)),
            last_break: Mutex::new(None),
        }
    }

    /// One that is alive, as far as can be known, within [`ACQUIRE_TIMEOUT`].
    pub async fn acquire(&self) -> Result<Session, sqlx::Error> {
        timeout(ACQUIRE_TIMEOUT, self.take_or_open()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn take_or_open(&self) -> Result<Session, sqlx::Error> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some(Idle { mut session, opened, since }) = self.pop() {
            if !self.is_suspect(since) || answers(&mut session).await {
                return Ok(Session { connection: session, opened, turn });
            }
        }
        let connection = self.open().await?;
        Ok(Session { connection, opened: Instant::now(), turn })
    }

    /// A server that is just starting is waited for.
    async fn open(&self) -> Result<PgConnection, sqlx::Error> {
        let mut pause = CONNECT_PAUSE;
        loop {
            match self.options.connect().await {
                Err(error) if is_passing(&error) => {
                    sleep(pause).await;
                    pause = (pause * 2).min(CONNECT_PAUSE_MAX);
                }
                opened => return opened,
            }
        }
    }

    /// Keeps it for the next one. Nothing may be left unread or undone on it.
    pub fn put_back(&self, Session { connection, opened, turn }: Session) {
        let now = Instant::now();
        {
            let mut idle = self.idle();
            idle.retain(|idle| now - idle.since < IDLE_MAX);
            if now - opened < AGE_MAX && !self.turns.is_closed() {
                idle.push(Idle { session: connection, opened, since: now });
            }
        }
        // Only now: whoever comes next shall find it.
        drop(turn);
    }

    /// A session broke: those that were idle at that moment have probably broken too.
    pub fn note_break(&self) {
        *self.last_break.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Closes those that are idle; whoever asks from now on gets none.
    pub async fn close(&self) {
        self.turns.close();
        let idle = std::mem::take(&mut *self.idle());
        for Idle { session, .. } in idle {
            // The server notices a closed connection by itself.
            drop(session.close().await);
        }
    }

    fn is_suspect(&self, idle_since: Instant) -> bool {
        let last_break = *self.last_break.lock().unwrap_or_else(PoisonError::into_inner);
        idle_since.elapsed() > IDLE_UNTESTED_MAX || last_break.is_some_and(|broke| broke >= idle_since)
    }

    fn pop(&self) -> Option<Idle> {
        self.idle().pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub async fn answers(session: &mut PgConnection) -> bool {
    timeout(PING_TIMEOUT, session.ping()).await.is_ok_and(|pong| pong.is_ok())
}

/// Whether the same may succeed a moment later: nobody listens yet, the server is starting, or it has too many sessions.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset
        ),
        sqlx::Error::Database(reported) => matches!(reported.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}
