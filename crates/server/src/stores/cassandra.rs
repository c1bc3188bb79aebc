use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Clock, Invalid};
use store::Store;
use store_cassandra::{Cassandra, CassandraOptions, OpenError};
use store_partitioned::PartitionedStore;

use super::{
    DATABASE_URL, Database, StoreKind,
    open_deadline::{NotOpen, OpenDeadline},
};
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
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct CassandraCluster(CassandraOptions);

#[async_trait]
impl Database for CassandraCluster {
    fn describe(&self) -> String {
        format!("Cassandra at {}", self.0.location())
    }

    async fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Failure> {
        let deadline = OpenDeadline::new(clock, OPEN_TIMEOUT);
        loop {
            match open(&self.0, clock).await {
                Ok(store) => return Ok(store),
                Err(reason) => deadline.wait(reason).await?,
            }
        }
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

async fn open(options: &CassandraOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, NotOpen> {
    let database = Cassandra::connect(options).await.map_err(|error| {
        let sentence = format!("{error}.");
        match error {
            OpenError::Unreachable(_) | OpenError::NotReady(_) => NotOpen::Yet(Failure::run(sentence, error)),
            OpenError::Certificates(_) => NotOpen::Ever(Failure::configuration(sentence, error)),
            OpenError::SetUp(_) => NotOpen::Ever(Failure::run(sentence, error)),
        }
    })?;
    match PartitionedStore::open(Arc::new(database), Arc::clone(clock), options.shards).await {
        Ok(store) => Ok(Arc::new(store)),
        // Too few of its nodes may be up.
        Err(error) => Err(NotOpen::Yet(Failure::run(format!("The keyspace could not be opened: {error}."), error))),
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
