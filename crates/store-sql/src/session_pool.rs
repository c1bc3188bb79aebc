//! A few sessions with the database, opened when they are wanted and kept for the next call.
//!
//! sqlx has a pool as well, but that one pings every session whenever it is given back: a second round trip for each call, which
//! wakes a process of the server for nothing.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
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
/// The time after which a session that no call needed is closed: a PostgreSQL server holds 2.2 MiB for each. The next call that needs one
/// waits some milliseconds until it is open.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// The server keeps more and more for a session that lives on.
const AGE_MAX: Duration = Duration::from_secs(1_800);
/// How long to wait before a server that cannot take sessions yet is asked again.
const CONNECT_BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

#[derive(Debug)]
pub struct SessionPool<D: Driver> {
    driver: D,
    /// One for each session that may be open.
    permits: Arc<Semaphore>,
    idle: Mutex<IdleSessions<D::Session>>,
    last_break: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct IdleSessions<Connection> {
    /// The one that was used last is on top.
    stack: Vec<Idle<Connection>>,
    /// Whether a task closes those that stay idle.
    are_watched: bool,
}

impl<Connection> IdleSessions<Connection> {
    /// Takes out those that no call needed for long. Says when to look again, if any are left: if not, they are no longer watched.
    fn expire(&mut self) -> (Vec<Idle<Connection>>, Option<Duration>) {
        let expired = self.stack.extract_if(.., |idle| idle.since.elapsed() >= IDLE_MAX).collect();
        let oldest = self.stack.iter().map(|idle| idle.since.elapsed()).max();
        self.are_watched = oldest.is_some();
        (expired, oldest.map(|idle| IDLE_MAX.saturating_sub(idle)))
    }
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
            idle: Mutex::new(IdleSessions { stack: Vec::with_capacity(sessions_max), are_watched: false }),
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
    pub fn put_back(self: &Arc<Self>, Session { connection, opened, permit }: Session<D::Session>) {
        let now = Instant::now();
        let is_first = {
            // Under the lock: a pool that is being closed must not be given one that it no longer looks for.
            let mut idle = self.idle();
            let is_kept = now - opened < AGE_MAX && !self.permits.is_closed();
            if is_kept {
                idle.stack.push(Idle { connection, opened, since: now });
            }
            is_kept && !std::mem::replace(&mut idle.are_watched, true)
        };
        if is_first {
            // Not under the lock: a runtime that is ending drops the task at once, which takes it.
            tokio::spawn(close_idle(Watch(Arc::downgrade(self))));
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
        let idle = std::mem::take(&mut self.idle().stack);
        close_all::<D>(idle).await;
    }

    fn is_suspect(&self, idle_since: Instant) -> bool {
        let last_break = *self.last_break.lock().unwrap_or_else(PoisonError::into_inner);
        idle_since.elapsed() > IDLE_UNTESTED_MAX || last_break.is_some_and(|broke| broke >= idle_since)
    }

    fn pop(&self) -> Option<Idle<D::Session>> {
        self.idle().stack.pop()
    }

    fn idle(&self) -> MutexGuard<'_, IdleSessions<D::Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that closes idle sessions of a pool. However it ends, the next session that is put back starts another.
struct Watch<D: Driver>(Weak<SessionPool<D>>);

impl<D: Driver> Drop for Watch<D> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.idle().are_watched = false;
        }
    }
}

/// Closes sessions that stay idle, until there is none.
async fn close_idle<D: Driver>(mut watch: Watch<D>) {
    let mut next = Some(IDLE_MAX);
    while let Some(pause) = next {
        sleep(pause).await;
        // The pool is not held while sessions are closed.
        let Some((expired, later)) = watch.0.upgrade().map(|pool| pool.idle().expire()) else { return };
        if later.is_none() {
            // The pool is not watched any more, and another task may have begun to.
            watch.0 = Weak::new();
        }
        close_all::<D>(expired).await;
        next = later;
    }
}

async fn close_all<D: Driver>(sessions: Vec<Idle<D::Session>>) {
    for Idle { connection, .. } in sessions {
        // A server that does not answer notices the closed connection by itself.
        drop(timeout(PING_TIMEOUT, D::close(connection)).await);
    }
}

/// Whether the server answers on this session, and soon.
pub async fn answers<D: Driver>(session: &mut D::Session) -> bool {
    timeout(PING_TIMEOUT, D::answers(session)).await.unwrap_or(false)
}

fn no_session(cause: impl Into<Cause>) -> NoSession {
    NoSession { cause: cause.into(), is_passing: false }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Sessions that are counted while they are open, and may take for ever to be closed.
    #[derive(Debug, Default)]
    struct Counting {
        open: Arc<AtomicUsize>,
        hangs: bool,
    }

    #[derive(Debug)]
    struct Counted {
        open: Arc<AtomicUsize>,
        hangs: bool,
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Driver for Counting {
        const SERVER: &'static str = "a test";
        const SESSIONS_DISCARDED: &'static str = "discarded";
        const CONTENTION: &'static str = "contention";

        type Session = Counted;

        async fn open(&self) -> Result<Counted, NoSession> {
            self.open.fetch_add(1, Ordering::Relaxed);
            Ok(Counted { open: Arc::clone(&self.open), hangs: self.hangs })
        }

        async fn answers(_: &mut Counted) -> bool {
            true
        }

        async fn close(session: Counted) {
            if session.hangs {
                std::future::pending().await
            }
        }
    }

    fn pool(hangs: bool) -> (Arc<SessionPool<Counting>>, Arc<AtomicUsize>) {
        let open = Arc::default();
        (Arc::new(SessionPool::new(Counting { open: Arc::clone(&open), hangs }, 4)), open)
    }

    async fn use_at_once(pool: &Arc<SessionPool<Counting>>, count: usize) {
        let mut sessions = Vec::new();
        for _ in 0..count {
            sessions.push(pool.acquire().await.unwrap());
        }
        sessions.into_iter().for_each(|session| pool.put_back(session));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_no_call_needs_are_closed_after_a_minute() {
        let (pool, open) = pool(false);
        let open = || open.load(Ordering::Relaxed);
        use_at_once(&pool, 3).await;
        for seconds in [30, 29] {
            sleep(Duration::from_secs(seconds)).await;
            use_at_once(&pool, 1).await;
            assert_eq!(open(), 3);
        }
        sleep(Duration::from_secs(2)).await;
        assert_eq!(open(), 1, "the one that was used");
        sleep(IDLE_MAX).await;
        assert_eq!(open(), 0);
        use_at_once(&pool, 2).await;
        assert_eq!(open(), 2);
        sleep(IDLE_MAX + Duration::from_secs(1)).await;
        assert_eq!(open(), 0, "also those that were opened later");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_cannot_be_closed_holds_up_no_other() {
        let (pool, open) = pool(true);
        use_at_once(&pool, 3).await;
        sleep(IDLE_MAX + PING_TIMEOUT * 4).await;
        assert_eq!(open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_watched_again_after_the_runtime_of_the_watch_has_ended() {
        let (pool, open) = pool(false);
        let of_another = Arc::clone(&pool);
        let another = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(use_at_once(&of_another, 1));
        });
        another.await.unwrap();
        use_at_once(&pool, 1).await;
        sleep(IDLE_MAX * 2).await;
        assert_eq!(open.load(Ordering::Relaxed), 0);
    }

    /// Puts a session back when it is dropped.
    struct PutsBack(Arc<SessionPool<Counting>>, Option<Session<Counted>>);

    impl Drop for PutsBack {
        fn drop(&mut self) {
            self.1.take().into_iter().for_each(|session| self.0.put_back(session));
        }
    }

    #[test]
    fn a_session_can_be_put_back_while_the_runtime_ends() {
        let (pool, open) = pool(false);
        let (ended, has_ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let session = pool.acquire().await.unwrap();
                let puts_back = PutsBack(Arc::clone(&pool), Some(session));
                tokio::spawn(async move {
                    let _puts_back = puts_back;
                    std::future::pending::<()>().await;
                });
                tokio::task::yield_now().await;
            });
            drop(runtime);
            drop(pool);
            ended.send(()).unwrap();
        });
        has_ended.recv_timeout(Duration::from_secs(30)).expect("the end of the runtime");
        assert_eq!(open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_pool_keeps_nothing() {
        let (pool, open) = pool(false);
        let session = pool.acquire().await.unwrap();
        use_at_once(&pool, 1).await;
        pool.close().await;
        pool.put_back(session);
        assert_eq!(open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_is_gone_is_not_watched() {
        let (pool, open) = pool(false);
        use_at_once(&pool, 1).await;
        drop(pool);
        assert_eq!(open.load(Ordering::Relaxed), 0, "nothing else holds it");
        sleep(IDLE_MAX * 2).await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    }
}
