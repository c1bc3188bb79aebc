//! Telling the other processes of timers that are due soon, with PostgreSQL's own notifications.
//!
//! ```text
//!   nudge ──▶ nudges' bulkhead: pg_notify ──▶ PostgreSQL ──▶ a session that listens ──▶ nudged, in every process
//! ```
//!
//! Best effort: what is sent while no node listens is lost, and behind a pooler that gives sessions away nothing arrives at all.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::PoisonError,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use domain::{Cause, Destination, TimerId, Timestamp};
use sqlx::{
    Executor, PgConnection,
    postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions},
    types::Uuid,
};
use store::{DueEntry, StoreError, StoreResult};
use store_sql::{Call, sql};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    connector::Connector,
    failure::{Failure, Step, describe},
};

pub(crate) const NUDGE: &str = sql!("sql/nudge.sql");
const CHANNEL: &str = sql!("sql/channel.sql");

const SENDER_BYTES: usize = 8;
/// Due time, id and destination.
const ENTRY_BYTES: usize = 8 + 16 + 8;
/// The server takes less than 8,000 bytes of text, in which each four characters carry three bytes.
const ENTRIES_MAX: usize = (7_999 / 4 * 3 - SENDER_BYTES) / ENTRY_BYTES;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// A session that was silent for this long is asked whether it is still there: one that broke without a word would be listened
/// to for ever.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Tells one process from another: each also hears what it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender(u64);

impl Sender {
    pub fn random() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

pub struct Nudge {
    payloads: Vec<String>,
}

impl Nudge {
    pub fn new(sender: Sender, entries: &[DueEntry]) -> Self {
        Self { payloads: entries.chunks(ENTRIES_MAX).map(|entries| pack(sender, entries)).collect() }
    }
}

impl Call<Connector> for Nudge {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query(NUDGE).bind(&self.payloads).execute(session).await.or_unknown()?;
        Ok(())
    }
}

fn pack(Sender(sender): Sender, entries: &[DueEntry]) -> String {
    let mut bytes = Vec::with_capacity(SENDER_BYTES + entries.len() * ENTRY_BYTES);
    bytes.extend_from_slice(&sender.to_be_bytes());
    for DueEntry { at, id, destination } in entries {
        bytes.extend_from_slice(&at.as_micros().to_be_bytes());
        bytes.extend_from_slice(id.as_uuid().as_bytes());
        bytes.extend_from_slice(&destination.0.to_be_bytes());
    }
    BASE64.encode(bytes)
}

/// `None` if it makes no sense: every user of the database may send notifications.
fn unpack(payload: &str) -> Option<(Sender, Vec<DueEntry>)> {
    let bytes = BASE64.decode(payload).ok()?;
    let (sender, entries) = bytes.split_first_chunk::<SENDER_BYTES>()?;
    if entries.is_empty() || entries.len() % ENTRY_BYTES != 0 {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let (at, rest) = bytes.split_first_chunk()?;
        let (id, destination) = rest.split_first_chunk()?;
        Some(DueEntry {
            at: Timestamp::from_micros(i64::from_be_bytes(*at)),
            id: TimerId::from_uuid(Uuid::from_bytes(*id)),
            destination: Destination(u64::from_be_bytes(destination.try_into().ok()?)),
        })
    };
    let entries = entries.chunks(ENTRY_BYTES).map(entry).collect::<Option<_>>()?;
    Some((Sender(u64::from_be_bytes(*sender)), entries))
}

/// A session of its own that listens, from the first time a caller waits.
pub struct Inbox {
    options: PgConnectOptions,
    /// A pool of one: it makes a new session when the old one broke.
    pool: std::sync::Mutex<PgPool>,
    session: Mutex<Option<Listening>>,
}

struct Listening {
    listener: PgListener,
    heard_at: Instant,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl Inbox {
    /// Opens no session yet.
    pub fn new(options: &PgConnectOptions) -> Self {
        Self { options: options.clone(), pool: std::sync::Mutex::new(pool_of_one(options)), session: Mutex::new(None) }
    }

    /// What another process than `own` tells next. A caller that stops waiting loses nothing: a session that is only half set up
    /// is dropped, and what a listening one has received stays with it.
    pub async fn next(&self, own: Sender) -> StoreResult<Vec<DueEntry>> {
        let mut session = self.session.lock().await;
        loop {
            let listening = match &mut *session {
                Some(listening) => listening,
                none => none.insert(self.listen().await.map_err(|error| self.give_up(error))?),
            };
            let payload = match listening.hear().await {
                Ok(payload) => payload,
                Err(error) => {
                    *session = None;
                    return Err(self.give_up(error));
                }
            };
            match payload.as_deref().map(unpack) {
                Some(Some((sender, entries))) if sender != own => return Ok(entries),
                Some(None) => metrics::counter!("timer_postgres_nudges_unreadable_total").increment(1),
                Some(Some(_)) | None => {}
            }
        }
    }

    async fn listen(&self) -> Result<Listening, sqlx::Error> {
        let connect = async {
            let mut listener = PgListener::connect_with(&self.pool()).await?;
            let channel: String = sqlx::query_scalar(CHANNEL).fetch_one(&mut listener).await?;
            listener.listen(&channel).await?;
            Ok(Listening { listener, heard_at: Instant::now() })
        };
        timeout(CONNECT_TIMEOUT, connect).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// A session that is dropped says goodbye to the server, and keeps its place in its pool until it is answered. On a broken
    /// wire that may take for ever, so the next one comes from another pool.
    fn give_up(&self, error: sqlx::Error) -> StoreError {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if !pool.is_closed() {
            *pool = pool_of_one(&self.options);
        }
        StoreError::Unavailable(Cause::new(format!("notifications cannot be received: {}", describe(&error)), error))
    }

    fn pool(&self) -> PgPool {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn close(&self) {
        // A caller that waits at this moment is told that the pool is closed, and lets go of the session.
        if let Ok(mut session) = self.session.try_lock() {
            *session = None;
        }
        drop(timeout(CLOSE_TIMEOUT, self.pool().close()).await);
    }
}

impl Listening {
    /// The next notification, or `None` when it was time for a heartbeat and there was one.
    async fn hear(&mut self) -> Result<Option<String>, sqlx::Error> {
        let heard = match timeout_at(self.heard_at + SILENCE_MAX, self.listener.recv()).await {
            Ok(notification) => Some(notification?.payload().to_owned()),
            Err(_) => {
                let answered = timeout(CONNECT_TIMEOUT, self.listener.execute("SELECT 1")).await;
                answered.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
                None
            }
        };
        self.heard_at = Instant::now();
        Ok(heard)
    }
}

fn pool_of_one(options: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(CONNECT_TIMEOUT)
        .connect_lazy_with(options.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u128) -> DueEntry {
        DueEntry {
            at: Timestamp::from_micros(1_750_000_000_000_000),
            id: TimerId::from_uuid(Uuid::from_u128(number)),
            destination: Destination(u64::MAX),
        }
    }

    #[test]
    fn entries_survive_their_payload() {
        let all: Vec<_> = (0..=u128::try_from(ENTRIES_MAX).unwrap()).map(entry).collect();
        let Nudge { payloads } = Nudge::new(Sender(7), &all);
        assert!(payloads.iter().all(|payload| payload.len() < 8_000), "{:?}", payloads[0].len());
        let unpacked: Vec<_> = payloads.iter().map(|payload| unpack(payload).unwrap()).collect();
        assert_eq!(unpacked.iter().map(|(_, entries)| entries.len()).collect::<Vec<_>>(), [ENTRIES_MAX, 1]);
        assert!(unpacked.iter().all(|(sender, _)| *sender == Sender(7)));
        assert_eq!(unpacked.into_iter().flat_map(|(_, entries)| entries).collect::<Vec<_>>(), all);
    }

    #[test]
    fn what_others_send_is_not_misread() {
        let whole = pack(Sender(7), &[entry(1)]);
        for payload in ["", "hello", "AAAA", &whole[..whole.len() - 4], &whole[..10], "AAAAAAAAAAA"] {
            assert_eq!(unpack(payload), None, "{payload}");
        }
    }
}
