//! Columns of the database to the words of the contract, and rows for statements that take many at once.
//!
//! The server has no arrays. A statement that is about many rows takes them as one JSON text, an array with an object for each row, and
//! reads it as a table (`JSON_TABLE`): its own text is always the same, and it is prepared once. What is absent from an object is
//! NULL.

use domain::{Definition, Destination, Fingerprint, TimerId, Timestamp};
use serde::{Serialize, Serializer};
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{RequestColumns, Unreadable};

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

/// A row of an answer.
pub struct Fields<'r>(pub &'r MySqlRow);

impl store_sql::Row for Fields<'_> {
    fn id(&self) -> Result<TimerId, Failure> {
        id(self.0).or_not_done()
    }

    fn is(&self, column: &str) -> Result<bool, Failure> {
        self.0.try_get(column).or_not_done()
    }

    fn optional_number(&self, column: &str) -> Result<Option<i64>, Failure> {
        self.0.try_get(column).or_not_done()
    }

    /// Some are kept as bytes; the others can be read so.
    fn optional_text(&self, column: &str) -> Result<Option<&str>, Failure> {
        let bytes: Option<&[u8]> = self.0.try_get(column).or_not_done()?;
        bytes.map(as_str).transpose().or_not_done()
    }
}

/// A text that is kept as bytes.
pub fn text(row: &MySqlRow, column: &str) -> Result<String, sqlx::Error> {
    as_str(row.try_get(column)?).map(str::to_owned)
}

fn as_str(bytes: &[u8]) -> Result<&str, sqlx::Error> {
    std::str::from_utf8(bytes).map_err(|error| sqlx::Error::Decode(error.into()))
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
            callback_config: definition.callback.to_stored(),
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
