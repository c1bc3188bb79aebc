//! The keyspace and its one table.

use scylla::{client::session::Session, errors::ExecutionError};

use crate::options::{CassandraOptions, Replication};

pub const TABLE: &str = "timer_rows";
/// The kind of rows; the kinds of index entries are the numbers of their indexes.
pub const ROW: i8 = 0;
/// The kind and the key of the one row in which a partition notes where its indexes are empty: see `gaps.rs`.
pub const NOTE: i8 = -1;
pub const NOTE_KEY: [u8; 1] = [0];

/// The time for which tombstones are kept: as long as Cassandra keeps hints for a node that is down. A node that was down for
/// longer has to be repaired or rebuilt before it comes back.
const GC_GRACE_SECONDS: u32 = 3 * 60 * 60;

pub fn table(keyspace: &str) -> String {
    format!("{keyspace}.{TABLE}")
}

/// Creates what is missing. What is there is left alone, so that a user without the right to create can run the service.
pub async fn create_missing(session: &Session, options: &CassandraOptions) -> Result<(), ExecutionError> {
    let keyspace = &options.keyspace;
    if !exists(session, "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", (keyspace,)).await? {
        session.query_unpaged(create_keyspace(keyspace, &options.replication), ()).await?;
    }
    let known = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    if !exists(session, known, (keyspace, TABLE)).await? {
        session.query_unpaged(create_table(keyspace), ()).await?;
    }
    Ok(())
}

async fn exists(
    session: &Session,
    query: &str,
    values: impl scylla::serialize::row::SerializeRow,
) -> Result<bool, ExecutionError> {
    let answer = session.query_unpaged(query, values).await?;
    Ok(answer.into_rows_result().is_ok_and(|rows| rows.rows_num() > 0))
}

fn create_keyspace(keyspace: &str, replication: &Replication) -> String {
    let factors = match replication {
        Replication::Everywhere(factor) => format!("'replication_factor': {factor}"),
        Replication::By(datacenters) => {
            let named: Vec<_> = datacenters.iter().map(|(name, factor)| format!("'{name}': {factor}")).collect();
            named.join(", ")
        }
    };
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', {factors}}} \
         AND durable_writes = true"
    )
}

/// `row` is the key of the row that an index entry stands for. Pages of a range lie side by side, so that levelled compaction, which
/// keeps a partition in few files, suits them.
fn create_table(keyspace: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {} (
            part text, kind tinyint, key blob, version uuid, head blob, body blob, log blob, row blob,
            PRIMARY KEY ((part), kind, key)
        ) WITH CLUSTERING ORDER BY (kind ASC, key ASC) AND gc_grace_seconds = {GC_GRACE_SECONDS}
            AND compaction = {{'class': 'LeveledCompactionStrategy'}}",
        table(keyspace)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_is_replicated_as_asked_for() {
        let everywhere = create_keyspace("timer", &Replication::Everywhere(3));
        assert!(everywhere.contains("'NetworkTopologyStrategy', 'replication_factor': 3}"), "{everywhere}");
        let named = create_keyspace("timer", &Replication::By(vec![("dc1".into(), 3), ("dc2".into(), 2)]));
        assert!(named.contains("'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}"), "{named}");
    }
}
