//! Columns of the database to the words of the contract, and back into arrays of columns.

use domain::{Definition, Destination, Fingerprint, TimerId, Timestamp};
use sqlx::{Row, postgres::PgRow, types::Uuid};
use store::{RequestColumns, Unreadable};

use crate::failure::{Failure, Step};

/// A row of an answer.
pub struct Fields<'r>(pub &'r PgRow);

impl store_sql::Row for Fields<'_> {
    fn id(&self) -> Result<TimerId, Failure> {
        id(self.0).or_not_done()
    }

    fn is(&self, column: &str) -> Result<bool, Failure> {
        self.0.try_get(column).or_not_done()
    }

    fn optional_number(&self, column: &str) -> Result<Option<i64>, Failure> {
        // The only one that is narrower.
        if column == "attempt" {
            return self.0.try_get::<Option<i32>, _>(column).map(|number| number.map(i64::from)).or_not_done();
        }
        self.0.try_get(column).or_not_done()
    }

    fn optional_text(&self, column: &str) -> Result<Option<&str>, Failure> {
        self.0.try_get(column).or_not_done()
    }
}

pub fn id(row: &PgRow) -> Result<TimerId, sqlx::Error> {
    row.try_get("id").map(TimerId::from_uuid)
}

pub fn fingerprint(row: &PgRow) -> Result<Fingerprint, Failure> {
    let bytes: Vec<u8> = row.try_get("fingerprint").or_not_done()?;
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

/// A text that PostgreSQL takes: it has no way to store the character with the number zero.
pub fn text_column(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The columns of definitions, one array each: the form in which a statement takes many at once.
#[derive(Debug, Default)]
pub struct DefinitionColumns {
    pub ids: Vec<Uuid>,
    pub namespaces: Vec<String>,
    pub keys: Vec<Option<String>>,
    pub askeds: Vec<i64>,
    pub execute_ats: Vec<i64>,
    pub callback_types: Vec<&'static str>,
    pub callback_configs: Vec<String>,
    pub metadatas: Vec<Option<String>>,
    pub correlation_ids: Vec<Option<String>>,
    pub retry_policies: Vec<Option<String>>,
    pub deliveries: Vec<&'static str>,
    pub options: Vec<Option<String>>,
    pub groups: Vec<Option<String>>,
    pub fingerprints: Vec<[u8; 16]>,
    pub destinations: Vec<i64>,
    pub shards: Vec<i16>,
}

impl DefinitionColumns {
    pub fn push(&mut self, definition: &Definition, execute_at: Timestamp, fingerprint: Fingerprint, shards: u16) {
        let Definition {
            id,
            namespace,
            key,
            asked: _,
            callback,
            metadata,
            correlation_id,
            retry_policy,
            delivery,
            group,
            options: _,
        } = definition;
        let request = RequestColumns::of(definition);
        self.ids.push(id.as_uuid());
        self.namespaces.push(namespace.as_str().to_owned());
        self.keys.push(key.as_ref().map(|key| key.as_str().to_owned()));
        self.askeds.push(request.asked);
        self.execute_ats.push(execute_at.as_micros());
        self.callback_types.push(callback.kind());
        self.callback_configs.push(callback.to_stored());
        self.metadatas.push(metadata.as_ref().map(|json| json.as_str().to_owned()));
        self.correlation_ids.push(correlation_id.as_ref().map(|id| id.as_str().to_owned()));
        self.retry_policies.push(retry_policy.as_ref().map(domain::RetryPolicy::to_json));
        self.deliveries.push(delivery.as_str());
        self.options.push(request.options);
        self.groups.push(group.as_ref().map(|group| group.as_str().to_owned()));
        self.fingerprints.push(fingerprint.0);
        self.destinations.push(destination_column(definition.destination()));
        self.shards.push(shard_column(*id, shards));
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
    fn a_text_loses_only_what_cannot_be_stored() {
        assert_eq!(text_column("a\0b\n😀"), "a\u{fffd}b\n😀");
    }
}
