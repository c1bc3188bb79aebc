//! Columns of the database to the words of the contract, and back into arrays of columns.

use domain::{Definition, Destination, Fingerprint, Pause, Status, Timer, TimerId, Timestamp};
use sqlx::{Row, postgres::PgRow, types::Uuid};
use store::{RequestColumns, StoredTimer, Unreadable};

use crate::failure::{Failure, Step};

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
    pub fn of_row(row: &PgRow) -> Result<Self, Failure> {
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
        Ok(Self {
            status: status.ok_or_else(|| Unreadable("it is neither due nor paused nor finished".to_owned()))?,
            attempt: i64::from(row.try_get::<i32, _>("attempt").or_not_done()?),
            last_error: row.try_get("last_error").or_not_done()?,
            executed_at: row.try_get("executed_at").or_not_done()?,
            finished_at: row.try_get("finished_at").or_not_done()?,
            pause,
        })
    }
}

/// The timer in a row with the columns of its definition, standing as given.
pub fn timer(id: TimerId, row: &PgRow, standing: Standing) -> Result<Timer, Failure> {
    Ok(stored(id, row, standing).or_not_done()?.into_timer()?)
}

/// The same for a row whose timer may be damaged or missing, which must not fail a whole call.
pub fn timer_or_complaint(id: TimerId, row: &PgRow, standing: Standing) -> Result<Timer, Unreadable> {
    stored(id, row, standing).map_err(|error| Unreadable(error.to_string()))?.into_timer()
}

fn stored(id: TimerId, row: &PgRow, standing: Standing) -> Result<StoredTimer, sqlx::Error> {
    Ok(StoredTimer {
        id,
        namespace: row.try_get("namespace")?,
        key: row.try_get("key")?,
        asked: row.try_get("asked")?,
        callback_config: row.try_get("callback_config")?,
        metadata: row.try_get("metadata")?,
        correlation_id: row.try_get("correlation_id")?,
        retry_policy: row.try_get("retry_policy")?,
        delivery: row.try_get("delivery")?,
        group: row.try_get("group_name")?,
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
    pub fingerprints: Vec<Vec<u8>>,
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
        self.callback_configs.push(callback.to_json());
        self.metadatas.push(metadata.as_ref().map(|json| json.as_str().to_owned()));
        self.correlation_ids.push(correlation_id.as_ref().map(|id| id.as_str().to_owned()));
        self.retry_policies.push(retry_policy.as_ref().map(domain::RetryPolicy::to_json));
        self.deliveries.push(delivery.as_str());
        self.options.push(request.options);
        self.groups.push(group.as_ref().map(|group| group.as_str().to_owned()));
        self.fingerprints.push(fingerprint.0.to_vec());
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
