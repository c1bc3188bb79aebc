//! Columns to values and back.

use domain::{CorrelationId, Definition, Destination, Fingerprint, Group, Key, Namespace, Status, TimerId, Timestamp};
use rusqlite::{
    Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};
use store::{RequestColumns, StoredTimer, Summary, Unreadable};
use store_sql::{column, sql};
use uuid::Uuid;

/// An id as its sixteen bytes, which sort as the id does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id([u8; 16]);

impl Id {
    pub const fn of(id: TimerId) -> Self {
        Self(id.as_uuid().into_bytes())
    }

    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    pub const fn timer(self) -> TimerId {
        TimerId::from_uuid(Uuid::from_bytes(self.0))
    }
}

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_blob()?.try_into().map(Self).map_err(|_| FromSqlError::InvalidType)
    }
}

pub const DEFINITION_BY_ID: &str = sql!("sql/definition_by_id.sql");
pub const TIMER_BY_ID: &str = sql!("sql/timer_by_id.sql");

/// What [`TIMER_BY_ID`] finds.
pub struct Found {
    pub timer: StoredTimer,
    pub fingerprint: Fingerprint,
    pub due_minute: i64,
}

impl Found {
    pub const fn execute_minute(&self) -> i64 {
        Timestamp::from_micros(self.timer.execute_at).minute()
    }
}

// What reads a definition reads it from rows of both.
const _: () = assert!(store_sql::are_first_columns_of(DEFINITION_BY_ID, TIMER_BY_ID));

/// The part of a timer that its definition holds; what the rest of the row says is for the caller to fill in.
pub fn definition(row: &Row<'_>) -> rusqlite::Result<StoredTimer> {
    Ok(StoredTimer {
        id: row.get::<_, Id>(column!(DEFINITION_BY_ID, "id"))?.timer(),
        namespace: row.get(column!(DEFINITION_BY_ID, "namespace"))?,
        key: row.get(column!(DEFINITION_BY_ID, "key"))?,
        asked: row.get(column!(DEFINITION_BY_ID, "asked"))?,
        callback_config: row.get(column!(DEFINITION_BY_ID, "callback_config"))?,
        metadata: row.get(column!(DEFINITION_BY_ID, "metadata"))?,
        correlation_id: row.get(column!(DEFINITION_BY_ID, "correlation_id"))?,
        retry_policy: row.get(column!(DEFINITION_BY_ID, "retry_policy"))?,
        delivery: row.get(column!(DEFINITION_BY_ID, "delivery"))?,
        group: row.get(column!(DEFINITION_BY_ID, "group_name"))?,
        options: row.get(column!(DEFINITION_BY_ID, "options"))?,
        execute_at: row.get(column!(DEFINITION_BY_ID, "execute_at"))?,
        created_at: row.get(column!(DEFINITION_BY_ID, "created_at"))?,
        updated_at: row.get(column!(DEFINITION_BY_ID, "updated_at"))?,
        revision: row.get(column!(DEFINITION_BY_ID, "revision"))?,
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        paused_at: None,
        pause_note: None,
    })
}

/// Reads a row of [`TIMER_BY_ID`].
pub fn found(row: &Row<'_>) -> rusqlite::Result<Result<Found, Unreadable>> {
    let mut timer = definition(row)?;
    if row.get(column!(TIMER_BY_ID, "waits"))? {
        let claim: Option<i64> = row.get(column!(TIMER_BY_ID, "claim"))?;
        timer.status = if claim.is_some() { Status::Executing } else { Status::Pending };
        timer.attempt = row.get(column!(TIMER_BY_ID, "due_attempt"))?;
        timer.last_error = row.get(column!(TIMER_BY_ID, "due_last_error"))?;
    } else if let Some(paused_at) = row.get(column!(TIMER_BY_ID, "paused_at"))? {
        timer.status = Status::Paused;
        timer.attempt = row.get(column!(TIMER_BY_ID, "paused_attempt"))?;
        timer.last_error = row.get(column!(TIMER_BY_ID, "paused_last_error"))?;
        timer.paused_at = Some(paused_at);
        timer.pause_note = row.get(column!(TIMER_BY_ID, "pause_note"))?;
    } else {
        let status: Option<String> = row.get(column!(TIMER_BY_ID, "status"))?;
        let Some(status) = status.as_deref().and_then(Status::parse) else {
            return Ok(Err(Unreadable(format!("timer {} is neither due nor paused nor finished", timer.id))));
        };
        timer.status = status;
        timer.attempt = row.get(column!(TIMER_BY_ID, "outcome_attempt"))?;
        timer.last_error = row.get(column!(TIMER_BY_ID, "outcome_last_error"))?;
        timer.executed_at = row.get(column!(TIMER_BY_ID, "executed_at"))?;
        timer.updated_at = row.get(column!(TIMER_BY_ID, "finished_at"))?;
    }
    let fingerprint = Fingerprint(row.get(column!(TIMER_BY_ID, "fingerprint"))?);
    Ok(Ok(Found { timer, fingerprint, due_minute: row.get(column!(TIMER_BY_ID, "due_minute"))? }))
}

pub const SUMMARY_BY_ID: &str = sql!("sql/summary_by_id.sql");

pub fn summary(row: &Row<'_>) -> rusqlite::Result<Result<Summary, Unreadable>> {
    let namespace: String = row.get(column!(SUMMARY_BY_ID, "namespace"))?;
    let key: Option<String> = row.get(column!(SUMMARY_BY_ID, "key"))?;
    let group: Option<String> = row.get(column!(SUMMARY_BY_ID, "group_name"))?;
    let correlation_id: Option<String> = row.get(column!(SUMMARY_BY_ID, "correlation_id"))?;
    let status: String = row.get(column!(SUMMARY_BY_ID, "status"))?;
    let parse = || -> Result<_, Unreadable> {
        let unreadable = |invalid: domain::Invalid| Unreadable(invalid.to_string());
        Ok((
            Namespace::parse(&namespace).map_err(unreadable)?,
            key.as_deref().map(Key::parse).transpose().map_err(unreadable)?,
            group.as_deref().map(Group::parse).transpose().map_err(unreadable)?,
            correlation_id.as_deref().map(CorrelationId::parse).transpose().map_err(unreadable)?,
            Status::parse(&status).ok_or_else(|| Unreadable(format!("status {status} is not known")))?,
        ))
    };
    let (namespace, key, group, correlation_id, status) = match parse() {
        Ok(parsed) => parsed,
        Err(unreadable) => return Ok(Err(unreadable)),
    };
    Ok(Ok(Summary {
        id: row.get::<_, Id>(column!(SUMMARY_BY_ID, "id"))?.timer(),
        namespace,
        key,
        group,
        callback_kind: row.get(column!(SUMMARY_BY_ID, "callback_type"))?,
        correlation_id,
        execute_at: Timestamp::from_micros(row.get(column!(SUMMARY_BY_ID, "execute_at"))?),
        status,
        attempt: row.get(column!(SUMMARY_BY_ID, "attempt"))?,
        last_error: row.get(column!(SUMMARY_BY_ID, "last_error"))?,
        executed_at: row.get::<_, Option<i64>>(column!(SUMMARY_BY_ID, "executed_at"))?.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(row.get(column!(SUMMARY_BY_ID, "created_at"))?),
        updated_at: Timestamp::from_micros(row.get(column!(SUMMARY_BY_ID, "updated_at"))?),
        revision: row.get(column!(SUMMARY_BY_ID, "revision"))?,
    }))
}

/// Whether the driver could not make sense of a value, in contrast to not being able to read at all.
pub const fn is_senseless(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..))
}

/// What a definition looks like in its columns. Made by the caller, so that the writer's thread only writes.
#[derive(Debug)]
pub struct Texts {
    pub callback_config: String,
    pub retry_policy: Option<String>,
    pub request: RequestColumns,
    pub fingerprint: Fingerprint,
    pub destination: i64,
}

impl Texts {
    pub fn of(definition: &Definition) -> Self {
        Self {
            callback_config: definition.callback.to_stored(),
            fingerprint: definition.fingerprint(),
            retry_policy: definition.retry_policy.as_ref().map(domain::RetryPolicy::to_json),
            request: RequestColumns::of(definition),
            destination: to_column(definition.destination()),
        }
    }

    /// About how much a definition and its columns hold in memory: the payload is in both.
    pub fn bytes(&self, definition: &Definition) -> usize {
        let metadata = definition.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
        2 * self.callback_config.len() + metadata + self.request.options.as_ref().map_or(0, String::len)
    }
}

/// All 64 bits, in a column that has a sign.
pub const fn to_column(destination: Destination) -> i64 {
    destination.0.cast_signed()
}

pub const fn from_column(destination: i64) -> Destination {
    Destination(destination.cast_unsigned())
}
