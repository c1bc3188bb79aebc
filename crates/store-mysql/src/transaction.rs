//! Transactions: how they begin, what they hold from then on, and how they end.
//!
//! ```text
//!   roll back what was left ──▶ begin ──▶ [lock a generation] ──▶ [lock shard leases] ──▶ the clock ──▶ [a first statement]
//!                                                                                                         in one round trip
//!   … what needs an answer …
//!   statements whose answers are not needed ──▶ commit ──▶ [a read]                                       in one round trip
//! ```
//!
//! A transaction that is dropped stays open until the next one on its session, or until the bulkhead asks the session whether it
//! answers: both roll it back first.

use std::{collections::HashMap, fmt::Write};

use domain::Timestamp;
use futures_util::StreamExt as _;
use sqlx::{AssertSqlSafe, Either, Row, mysql::MySqlRow};
use store::is_prompt;

use crate::{
    failure::{Failure, Step},
    session::Session,
};

const BEGIN: &str = "ROLLBACK; START TRANSACTION";
/// The moment, in microseconds since 1970. No setting of a time zone changes it.
pub const NOW: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now";
/// Its row says that the commit before it is done.
const COMMITTED: &str = "SELECT 1 AS committed";
/// How often a generation may be over between its choice and its lock.
const CHASES_MAX: usize = 8;

/// What a transaction holds from its beginning to its end.
#[derive(Debug, Default, Clone)]
pub struct Holds {
    /// It records events: a reader of events waits for it, see `events.rs`.
    pub generation: bool,
    /// The epochs of these shards stay what they are.
    pub shards: Vec<i16>,
}

/// A transaction that is open.
#[derive(Debug)]
pub struct Transaction<'s> {
    session: &'s mut Session,
    /// The moment at which it began, by the server's clock and after it held what it holds, in microseconds.
    pub now: i64,
    epochs: HashMap<i16, i64>,
    /// Statements that are sent with the commit.
    last: Vec<String>,
}

impl<'s> Transaction<'s> {
    /// Begins one that records events.
    pub async fn recording(session: &'s mut Session) -> Result<Self, Failure> {
        Self::begin(session, Holds { generation: true, shards: Vec::new() }).await
    }

    pub async fn begin(session: &'s mut Session, holds: Holds) -> Result<Self, Failure> {
        Self::begin_with(session, holds, None).await.map(|(transaction, _)| transaction)
    }

    /// The same with a first statement, in the same round trip. Answers with its rows. Its values are written into it, see `literal.rs`.
    pub async fn begin_with(
        session: &'s mut Session,
        mut holds: Holds,
        first: Option<String>,
    ) -> Result<(Self, Vec<MySqlRow>), Failure> {
        // In the order of the key, so that no two transactions wait for each other in a circle.
        holds.shards.sort_unstable();
        holds.shards.dedup();
        let event_lock = holds.generation.then(|| session.event_lock());
        let mut text = text(event_lock.as_deref(), &holds.shards);
        if let Some(first) = first {
            text.push_str("; ");
            text.push_str(&first);
        }
        for _ in 0..CHASES_MAX {
            let mut rows = sqlx::raw_sql(AssertSqlSafe(text.clone())).fetch_all(&mut *session).await.or_not_done()?;
            let clock = rows.iter().position(|row| row.try_column("now").is_ok()).unwrap_or(rows.len());
            let found = rows.split_off(rows.len().min(clock + 1));
            let (mut now, mut is_recorded, mut epochs) = (0, false, HashMap::with_capacity(holds.shards.len()));
            for row in rows {
                if let Ok(moment) = row.try_get("now") {
                    now = moment;
                } else if let Ok(shard) = row.try_get::<i16, _>("shard") {
                    epochs.insert(shard, row.try_get("epoch").or_not_done()?);
                } else {
                    is_recorded = true;
                }
            }
            if is_recorded || !holds.generation {
                return Ok((Self { session, now, epochs, last: Vec::new() }, found));
            }
        }
        Err(Failure::contention("generations are over faster than they can be locked"))
    }

    /// Ends it without a change, and begins another one.
    pub async fn again(self, holds: Holds, first: Option<String>) -> Result<(Self, Vec<MySqlRow>), Failure> {
        Self::begin_with(self.session, holds, first).await
    }

    pub fn session(&mut self) -> &mut Session {
        self.session
    }

    /// The epoch of the shard, which stays what it is until the end; `None` for a shard that is not held.
    pub fn epoch(&self, shard: i16) -> Option<i64> {
        self.epochs.get(&shard).copied()
    }

    /// Whether a moment is near enough to this write to be found by it. One that is not has an entry in the journal as well.
    pub const fn is_prompt(&self, at: Timestamp) -> bool {
        is_prompt(at, Timestamp::from_micros(self.now))
    }

    /// Adds a statement whose answer is not needed: it is sent with the commit, in the same round trip. Its values are written into it,
    /// see `literal.rs`.
    pub fn then(&mut self, statement: String) {
        self.last.push(statement);
    }

    /// Ends it without a change. One that is only dropped holds its locks a little longer.
    pub async fn rollback(self) -> Result<(), Failure> {
        sqlx::raw_sql("ROLLBACK").execute(self.session).await.or_not_done()?;
        Ok(())
    }

    /// Sends what was added, and commits. The server stops at the first statement that fails, and then commits nothing.
    pub async fn commit(mut self) -> Result<(), Failure> {
        self.last.push("COMMIT".to_owned());
        sqlx::raw_sql(AssertSqlSafe(self.last.join("; "))).execute(self.session).await.or_unknown()?;
        Ok(())
    }

    /// The same, and reads in the same round trip. Answers with the rows. What fails after the commit is not called undone.
    pub async fn commit_and_read(mut self, read: String) -> Result<Vec<MySqlRow>, Failure> {
        self.last.extend(["COMMIT", COMMITTED].map(str::to_owned));
        self.last.push(read);
        let mut results = sqlx::raw_sql(AssertSqlSafe(self.last.join("; "))).fetch_many(self.session);
        let (mut is_committed, mut rows) = (false, Vec::new());
        while let Some(result) = results.next().await {
            let result = result.or_unknown().map_err(|failure| failure.after_a_commit_if(is_committed))?;
            if let Either::Right(row) = result {
                // No statement before the commit answers with rows.
                if is_committed {
                    rows.push(row);
                }
                is_committed = true;
            }
        }
        Ok(rows)
    }
}

fn text(event_lock: Option<&str>, shards: &[i16]) -> String {
    let mut text = BEGIN.to_owned();
    if let Some(lock) = event_lock {
        // Writing to a text cannot fail.
        let _ = write!(text, "; {lock}");
    }
    if !shards.is_empty() {
        let shards: Vec<_> = shards.iter().map(i16::to_string).collect();
        let _ = write!(text, "; SELECT shard, epoch FROM shard WHERE shard IN ({}) LOCK IN SHARE MODE", shards.join(", "));
    }
    let _ = write!(text, "; {NOW}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_takes_what_it_is_to_hold() {
        assert_eq!(text(None, &[]), format!("{BEGIN}; {NOW}"));
        let both = text(Some("SELECT lock"), &[1, 7]);
        assert!(
            both.starts_with(&format!("{BEGIN}; SELECT lock; ")) && both.contains("shard IN (1, 7) LOCK IN SHARE MODE"),
            "{both}"
        );
    }
}
