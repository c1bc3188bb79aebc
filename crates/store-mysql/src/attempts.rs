//! What is remembered of attempts: written by the settlement that ends one, read by clients that ask what happened.

use std::collections::HashMap;

use domain::{Attempt, Span, TimerId, Timestamp, limits};
use serde::Serialize;
use sqlx::{Row as _, mysql::MySqlRow};
use store::{Happened, Unreadable};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    journal::Entries,
    literal,
    rows::{self, Hex, json},
    session::Session,
    transaction::Transaction,
};

pub(crate) const LAST_ATTEMPTS: &str = sql!("sql/last_attempts.sql");
pub(crate) const INSERT_ATTEMPTS: &str = sql!("sql/insert_attempts.sql");
pub(crate) const FORGET_ATTEMPTS: &str = sql!("sql/forget_attempts.sql");
pub(crate) const ATTEMPTS: &str = sql!("sql/attempts.sql");

#[derive(Serialize)]
struct Row<'a> {
    id: Hex,
    seq: i64,
    number: i32,
    started_at: i64,
    took: i64,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

impl Row<'_> {
    /// How many bytes the texts have that may be long.
    fn long_bytes(&self) -> usize {
        self.detail.map_or(0, str::len) + self.answer.as_ref().map_or(0, String::len)
    }
}

/// What the long texts of attempts may have for them to be sent with the commit, where they take twice as much: a server takes statements up to a
/// limit.
const LONG_BYTES_WITH_COMMIT_MAX: usize = 256 * 1024;

#[derive(Serialize)]
struct Forgotten {
    id: Hex,
    seq: i64,
}

/// Has attempts of timers that are locked remembered, each timer once, and those forgotten that are too many: with the commit, unless they are
/// long.
pub async fn remember(
    transaction: &mut Transaction<'_>,
    attempts: &[(TimerId, &Attempt)],
    entries: &mut Entries,
) -> Result<(), Failure> {
    if attempts.is_empty() {
        return Ok(());
    }
    let ids: Vec<Hex> = attempts.iter().map(|(id, _)| Hex::from(*id)).collect();
    let last = sqlx::query(LAST_ATTEMPTS)
        .bind(transaction.session().given(&ids).await?)
        .fetch_all(transaction.session())
        .await
        .or_not_done()?;
    let read = |row: &MySqlRow| Ok((rows::id(row)?, row.try_get("seq")?));
    let last: HashMap<TimerId, i64> = last.iter().map(read).collect::<Result<_, sqlx::Error>>().or_not_done()?;
    let kept = i64::try_from(limits::ATTEMPTS_KEPT).unwrap_or(i64::MAX);
    let (mut rows, mut forgotten) = (Vec::with_capacity(attempts.len()), Vec::new());
    for (id, attempt) in attempts {
        let seq = last.get(id).copied().unwrap_or(0) + 1;
        entries.push(*id, Happened::Attempted { seq });
        if seq > kept {
            forgotten.push(Forgotten { id: Hex::from(*id), seq: seq - kept });
        }
        rows.push(Row {
            id: Hex::from(*id),
            seq,
            number: i32::try_from(attempt.number).unwrap_or(i32::MAX),
            started_at: attempt.started_at.as_micros(),
            took: attempt.took.as_micros(),
            outcome: &attempt.outcome,
            status: attempt.status,
            detail: attempt.detail.as_deref(),
            answer: attempt.kept_text(),
        });
    }
    if rows.iter().map(Row::long_bytes).sum::<usize>() <= LONG_BYTES_WITH_COMMIT_MAX {
        transaction.then(literal::placed(INSERT_ATTEMPTS, [literal::text(&json(&rows)?)]));
    } else {
        let rows = transaction.session().given(&rows).await?;
        sqlx::query(INSERT_ATTEMPTS).bind(rows).execute(transaction.session()).await.or_not_done()?;
    }
    if !forgotten.is_empty() {
        transaction.then(literal::placed(FORGET_ATTEMPTS, [literal::text(&json(&forgotten)?)]));
    }
    Ok(())
}

/// What is remembered of one timer.
pub struct Attempts {
    pub id: TimerId,
}

impl Call<Connector> for Attempts {
    type Answer = Vec<Attempt>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<Attempt>, Failure> {
        let rows = sqlx::query(ATTEMPTS).bind(self.id.as_uuid()).fetch_all(session).await.or_not_done()?;
        rows.iter().map(attempt).collect()
    }
}

pub(crate) fn attempt(row: &MySqlRow) -> Result<Attempt, Failure> {
    let out_of_range = |_| Unreadable("a number of an attempt is out of range".to_owned());
    let status: Option<i32> = row.try_get("status").or_not_done()?;
    let kept: Option<String> = row.try_get("answer").or_not_done()?;
    let attempt = Attempt {
        number: u32::try_from(row.try_get::<i32, _>("number").or_not_done()?).map_err(out_of_range)?,
        started_at: Timestamp::from_micros(row.try_get("started_at").or_not_done()?),
        took: Span::from_micros_clamped(row.try_get("took").or_not_done()?),
        outcome: row.try_get("outcome").or_not_done()?,
        status: status.map(u16::try_from).transpose().map_err(out_of_range)?,
        detail: row.try_get("detail").or_not_done()?,
        node: None,
        answer: None,
    };
    Ok(attempt.with_kept(kept.as_deref()))
}
