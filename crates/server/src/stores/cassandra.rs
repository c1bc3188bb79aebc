use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Clock, Invalid};
use store::Store;
use store_cassandra::{Cassandra, CassandraOptions, OpenError};
use store_partitioned::PartitionedStore;

use super::{DATABASE_URL, Database, StoreKind};
use crate::exit::Failure;

pub const KIND: StoreKind = StoreKind {
    schemes: &["cassandra"],
    url_form: "cassandra://USER:PASSWORD@HOST:PORT,HOST2/KEYSPACE",
    from_url: |url| match CassandraOptions::parse(url) {
        Ok(options) => Ok(Arc::new(CassandraCluster(options))),
        Err(rule) => Err(Invalid::new(DATABASE_URL, rule)),
    },
    from_parts: |_| None,
    refuse_stray_parts: |_| Ok(()),
    public_causes: &[],
    metrics: store_cassandra::METRICS,
};

/// How long a cluster may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct CassandraCluster(CassandraOptions);

#[async_trait]
impl Database for CassandraCluster {
    fn describe(&self) -> String {
        format!("Cassandra at {}", self.0.location())
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let database = Arc::new(connect(&self.0, clock).await?);
        let store = PartitionedStore::open(database, Arc::clone(clock), self.0.shards).await;
        Ok(Arc::new(store.map_err(|error| Failure::run(format!("The keyspace could not be opened: {error}."), error))?))
    }

    fn backup(&self, _file: &Path) -> Result<String, Failure> {
        Err(Failure::Configuration("Cassandra has its own tool for this: nodetool snapshot, on every node.".into()))
    }

    fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
        Err(Failure::Configuration(
            "Cassandra has its own tools for this: nodetool import, or sstableloader, of a snapshot.".into(),
        ))
    }
}

async fn connect(options: &CassandraOptions, clock: &Arc<dyn Clock>) -> Result<Cassandra, Failure> {
    const PAUSE: Duration = Duration::from_secs(1);
    let begun = clock.monotonic();
    loop {
        match Cassandra::connect(options).await {
            Ok(cassandra) => return Ok(cassandra),
            Err(error @ OpenError::Unreachable(_)) if clock.monotonic() - begun < PATIENCE => {
                tracing::warn!("{error}; waiting for it");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(Failure::run(format!("{error}."), error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_described_without_credentials_or_refused_by_a_sentence() {
        let described = |url: &str| (KIND.from_url)(url).map(|database| database.describe());
        let shown = described("cassandra://u:secret@db1,db2:9043/timer?shards=8").unwrap();
        assert_eq!(shown, "Cassandra at db1:9042,db2:9043/timer");
        let refused = described("cassandra://u:secret@db/timer?shards=none").unwrap_err().to_string();
        assert_eq!(refused, "DATABASE_URL has a parameter `shards` that must be a number from 1 to 4096");
    }
}
