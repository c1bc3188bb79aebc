//! DynamoDB, where this program was built with it: its SDK is as large as all the rest of a store.

use std::sync::Arc;

use domain::Invalid;

use super::{Database, StoreKind};

pub const KIND: StoreKind = StoreKind {
    schemes: &["dynamodb"],
    url_form: "dynamodb://REGION/TABLE",
    from_url,
    from_parts: |_| None,
    refuse_stray_parts: |_| Ok(()),
    public_causes: &[],
    metrics: store_dynamodb::METRICS,
};

#[cfg(feature = "dynamodb")]
fn from_url(url: &str) -> Result<Arc<dyn Database>, Invalid> {
    table::from_url(url)
}

#[cfg(not(feature = "dynamodb"))]
fn from_url(_url: &str) -> Result<Arc<dyn Database>, Invalid> {
    let rule = "names a DynamoDB table, which this build of timer cannot use: build it with `--features dynamodb`";
    Err(Invalid::new(super::DATABASE_URL, rule))
}

#[cfg(feature = "dynamodb")]
mod table {
    use std::{path::Path, sync::Arc, time::Duration};

    use async_trait::async_trait;
    use domain::{Clock, Invalid};
    use store::Store;
    use store_dynamodb::{Address, DynamodbDatabase, OpenError};
    use store_partitioned::PartitionedStore;

    use super::super::{
        DATABASE_URL, Database,
        open_deadline::{NotOpen, OpenDeadline},
    };
    use crate::exit::Failure;

    /// How long DynamoDB may be out of reach at the start.
    const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

    #[derive(Debug)]
    struct DynamodbTable(Address);

    pub fn from_url(url: &str) -> Result<Arc<dyn Database>, Invalid> {
        match Address::parse(url) {
            Ok(address) => Ok(Arc::new(DynamodbTable(address))),
            Err(rule) => Err(Invalid::new(DATABASE_URL, rule)),
        }
    }

    #[async_trait]
    impl Database for DynamodbTable {
        fn describe(&self) -> String {
            format!("DynamoDB at {}", self.0.location())
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
            let sentence = "DynamoDB has its own tools for this: point-in-time recovery, and backups on demand.";
            Err(Failure::Configuration(sentence.into()))
        }

        fn restore(&self, _file: &Path, _replace: bool) -> Result<String, Failure> {
            let sentence =
                "DynamoDB has its own tool for this: it restores a backup as a new table, which DATABASE_URL then names.";
            Err(Failure::Configuration(sentence.into()))
        }
    }

    async fn open(address: &Address, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, NotOpen> {
        let database = DynamodbDatabase::connect(address).await.map_err(|error| {
            let sentence = format!("{error}.");
            match error {
                OpenError::Unreachable(_) => NotOpen::Yet(Failure::run(sentence, error)),
                OpenError::NoRegion => NotOpen::Ever(Failure::configuration(sentence, error)),
                OpenError::Unfit(_) => NotOpen::Ever(Failure::run(sentence, error)),
            }
        })?;
        match PartitionedStore::open(Arc::new(database), Arc::clone(clock), address.shards()).await {
            Ok(store) => Ok(Arc::new(store)),
            // It waits by itself for a table that another process makes; what is refused here stays refused.
            Err(error) => Err(NotOpen::Ever(Failure::run(format!("The table could not be set up: {error}."), error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(url: &str) -> String {
        from_url(url).map_or_else(|refused| refused.to_string(), |database| database.describe())
    }

    #[cfg(feature = "dynamodb")]
    #[test]
    fn a_url_is_described_or_refused_by_a_sentence() {
        assert_eq!(described("dynamodb://eu-central-1/timer?shards=8"), "DynamoDB at eu-central-1, table timer");
        let refused = described("dynamodb://eu-central-1/timer?shards=none");
        assert_eq!(refused, "DATABASE_URL has a parameter `shards` that must be a number from 1 to 4096");
    }

    #[cfg(not(feature = "dynamodb"))]
    #[test]
    fn a_build_without_it_says_so_in_one_sentence() {
        assert_eq!(
            described("dynamodb://eu-central-1/timer"),
            "DATABASE_URL names a DynamoDB table, which this build of timer cannot use: build it with `--features dynamodb`"
        );
    }
}
