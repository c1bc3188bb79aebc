//! Columns of the database to the words of the contract, and rows for statements that take many at once.
//!
//! The server has no arrays. A statement that is about many rows takes them as one JSON text, an array with an object for each row, and
//! reads it as a table (`JSON_TABLE`): its own text is always the same, and it is prepared once. What is absent from an object is
//! NULL.

use domain::{Definition, Destination, Fingerprint, Pause, Status, Timer, TimerId, Timestamp};
use serde::{Serialize, Serializer};
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{RequestColumns, StoredTimer, Unreadable};

use crate::failure::{Failure, Step};

/// An id in the rows of a statement: its bytes in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub Uuid);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.simple().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl From<TimerId> for Hex {
    fn from(id: TimerId) -> Self {
        Self(id.as_uuid())
    }
}

/// Rows for a statement.
pub fn json<T: Serialize>(rows: &[T]) -> Result<String, Failure> {
    // Keys are fixed, and values are numbers and texts.
    Ok(serde_json::to_string(rows).map_err(|error| Unreadable(error.to_string()))?)
}

/// The key of a row in `due`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DueKey {
    pub shard: i16,
    pub at: i64,
    pub id: Hex,
}

/// What changes about a timer without its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub attempt: i64,
    pub last_error: Option<String>,
    pub executed_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub pause: Option<Pause>,
}

impl Standing {
    /// From a row with `waits`, `claimed`, `attempt`, `last_error`, `status`, `executed_at`, `finished_at`, `paused_at` and `pause_note`.
    pub fn of_row(row: &MySqlRow) -> Result<Self, Failure> {
        let finished: Option<String> = row.try_get("status").or_not_done()?;
        let paused_at: Option<i64> = row.try_get("paused_at").or_not_done()?;
        let note = row.try_get("pause_note").or_not_done()?;
        let pause = paused_at.map(|at| Pause { at: Timestamp::from_micros(at), note });
        let status = match (row.try_get("waits").or_not_done()?, row.try_get("claimed").or_not_done()?) {
            (true, false) => Some(Status::Pending),
            (true, true) => Some(Status::Executing),
            (false, _) if pause.is_some() => Some(Status::Paused),
            (false, _) => finished.as_deref().and_then(Status::parse),
        };
        let attempt: Option<i64> = row.try_get("attempt").or_not_done()?;
        Ok(Self {
            status: status.ok_or_else(|| Unreadable("it is neither due nor paused nor finished".to_owned()))?,
            attempt: attempt.unwrap_or_default(),
            last_error: row.try_get("last_error").or_not_done()?,
            executed_at: row.try_get("executed_at").or_not_done()?,
            finished_at: row.try_get("finished_at").or_not_done()?,
            pause,
        })
    }
}

/// The timer in a row with the columns of its definition, standing as given.
pub fn timer(id: TimerId, row: &MySqlRow, standing: Standing) -> Result<Timer, Failure> {
    Ok(stored(id, row, standing).or_not_done()?.into_timer()?)
}

/// The same for a row whose timer may be damaged or missing, which must not fail a whole call.
pub fn timer_or_complaint(id: TimerId, row: &MySqlRow, standing: Standing) -> Result<Timer, Unreadable> {
    stored(id, row, standing).map_err(|error| Unreadable(error.to_string()))?.into_timer()
}

fn stored(id: TimerId, row: &MySqlRow, standing: Standing) -> Result<StoredTimer, sqlx::Error> {
    Ok(StoredTimer {
        id,
        namespace: text(row, "namespace")?,
        key: optional_text(row, "key")?,
        asked: row.try_get("asked")?,
        callback_config: row.try_get("callback_config")?,
        metadata: row.try_get("metadata")?,
        correlation_id: optional_text(row, "correlation_id")?,
        retry_policy: row.try_get("retry_policy")?,
        delivery: row.try_get("delivery")?,
        group: optional_text(row, "group_name")?,
        options: row.try_get("options")?,
        execute_at: row.try_get("execute_at")?,
        status: standing.status,
        attempt: standing.attempt,
        last_error: standing.last_error,
        executed_at: standing.executed_at,
        created_at: row.try_get("created_at")?,
        updated_at: standing.finished_at.map_or_else(|| row.try_get("updated_at"), Ok)?,
        revision: row.try_get("revision")?,
        paused_at: standing.pause.as_ref().map(|pause| pause.at.as_micros()),
        pause_note: standing.pause.and_then(|pause| pause.note),
    })
}

/// A text that is kept as bytes.
pub fn text(row: &MySqlRow, column: &str) -> Result<String, sqlx::Error> {
    as_text(row.try_get(column)?)
}

pub fn optional_text(row: &MySqlRow, column: &str) -> Result<Option<String>, sqlx::Error> {
    row.try_get::<Option<&[u8]>, _>(column)?.map(as_text).transpose()
}

fn as_text(bytes: &[u8]) -> Result<String, sqlx::Error> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| sqlx::Error::Decode(error.into()))
}

pub fn id(row: &MySqlRow) -> Result<TimerId, sqlx::Error> {
    row.try_get("id").map(TimerId::from_uuid)
}

pub fn fingerprint(row: &MySqlRow) -> Result<Fingerprint, Failure> {
    let bytes: &[u8] = row.try_get("fingerprint").or_not_done()?;
    let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| Unreadable("its fingerprint has not 16 bytes".to_owned()))?;
    Ok(Fingerprint(bytes))
}

/// Which shard a timer is in, as its column has it.
pub fn shard_column(id: TimerId, shards: u16) -> i16 {
    id.shard(shards).0.cast_signed()
}

/// 64 bits are 64 bits; only their sign is read differently.
pub const fn destination_column(destination: Destination) -> i64 {
    destination.0.cast_signed()
}

pub const fn destination(column: i64) -> Destination {
    Destination(column.cast_unsigned())
}

/// The columns of a definition.
#[derive(Debug, Clone)]
pub struct DefinitionColumns {
    pub id: Uuid,
    pub shard: i16,
    pub asked: i64,
    pub execute_at: i64,
    pub fingerprint: [u8; 16],
    pub namespace: String,
    pub key: Option<String>,
    pub group: Option<String>,
    pub correlation_id: Option<String>,
    pub callback_type: &'static str,
    pub delivery: &'static str,
    pub retry_policy: Option<String>,
    pub metadata: Option<String>,
    pub callback_config: String,
    pub options: Option<String>,
    pub destination: i64,
}

impl DefinitionColumns {
    pub fn of(definition: &Definition, execute_at: Timestamp, fingerprint: Fingerprint, shards: u16) -> Self {
        let request = RequestColumns::of(definition);
        Self {
            id: definition.id.as_uuid(),
            shard: shard_column(definition.id, shards),
            asked: request.asked,
            execute_at: execute_at.as_micros(),
            fingerprint: fingerprint.0,
            namespace: definition.namespace.as_str().to_owned(),
            key: definition.key.as_ref().map(|key| key.as_str().to_owned()),
            group: definition.group.as_ref().map(|group| group.as_str().to_owned()),
            correlation_id: definition.correlation_id.as_ref().map(|id| id.as_str().to_owned()),
            callback_type: definition.callback.kind(),
            delivery: definition.delivery.as_str(),
            retry_policy: definition.retry_policy.as_ref().map(domain::RetryPolicy::to_json),
            metadata: definition.metadata.as_ref().map(|json| json.as_str().to_owned()),
            callback_config: definition.callback.to_json(),
            options: request.options,
            destination: destination_column(definition.destination()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_survives_its_column() {
        for number in [0, 1, u64::MAX, 1 << 63] {
            assert_eq!(destination(destination_column(Destination(number))), Destination(number));
        }
    }

    #[test]
    fn rows_are_objects_of_numbers_and_texts() {
        let key = DueKey { shard: 3, at: -7, id: Hex(Uuid::from_u128(0xabc)) };
        assert_eq!(json(&[key]).unwrap(), r#"[{"shard":3,"at":-7,"id":"00000000000000000000000000000abc"}]"#);
    }
}
