use std::{collections::HashSet, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;
use store_partitioned::{Columns, Consistency, Database as Driver, Partition, Range};

use super::Database;
use crate::rig::SHARDS;

/// A database of `store-partitioned`, read past the service by its driver. It knows no statements: what needs them is shown on other stores.
pub struct Partitioned {
    name: &'static str,
    url: String,
    connect: fn(String) -> BoxFuture<'static, Arc<dyn Driver>>,
    /// A cluster that the test has for itself.
    _server: Option<Arc<throwaway::Cassandra>>,
}

impl Partitioned {
    pub fn mongodb(url: String) -> Self {
        use store_mongodb::{Address, MongodbDatabase};
        let connect = |url: String| -> BoxFuture<'static, Arc<dyn Driver>> {
            Box::pin(async move {
                let address = Address::parse(&url).expect("a URL of MongoDB");
                Arc::new(MongodbDatabase::connect(&address).await.expect("a MongoDB that answers")) as Arc<dyn Driver>
            })
        };
        Self { name: "MongoDB", url, connect, _server: None }
    }

    #[cfg(feature = "dynamodb")]
    pub fn dynamodb(url: String) -> Self {
        use store_dynamodb::{Address, DynamodbDatabase};
        let connect = |url: String| -> BoxFuture<'static, Arc<dyn Driver>> {
            Box::pin(async move {
                let address = Address::parse(&url).expect("a URL of DynamoDB");
                Arc::new(DynamodbDatabase::connect(&address).await.expect("a DynamoDB that answers")) as Arc<dyn Driver>
            })
        };
        Self { name: "DynamoDB", url, connect, _server: None }
    }

    /// As many shards as the rig looks at, which is more than a keyspace has by default.
    pub fn cassandra(url: &str, server: Option<Arc<throwaway::Cassandra>>) -> Self {
        use store_cassandra::{Cassandra, CassandraOptions};
        let connect = |url: String| -> BoxFuture<'static, Arc<dyn Driver>> {
            Box::pin(async move {
                let options = CassandraOptions::parse(&url).expect("a URL of a keyspace");
                Arc::new(Cassandra::connect(&options).await.expect("a Cassandra that answers")) as Arc<dyn Driver>
            })
        };
        Self { name: "Cassandra", url: format!("{url}&shards={SHARDS}"), connect, _server: server }
    }

    /// The heads of the rows of all timers.
    fn heads(&self) -> Vec<Vec<u8>> {
        let connecting = (self.connect)(self.url.clone());
        let read = async move {
            let (database, mut heads) = (connecting.await, Vec::new());
            for shard in 0..SHARDS {
                let partition = Partition::new(format!("timers-{shard}"));
                let rows = database.range(&partition, &Range::all(1_000_000), Columns::HEAD, Consistency::Committed).await;
                heads.extend(rows.expect("the rows of a partition").into_iter().map(|row| row.head));
            }
            heads
        };
        // Tests call this from within a runtime, which must not be blocked.
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        std::thread::spawn(move || runtime.block_on(read)).join().expect("the rows of timers")
    }
}

impl Database for Partitioned {
    fn name(&self) -> &'static str {
        self.name
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let heads = self.heads();
        let key =
            |head: &Vec<u8>| serde_json::from_slice::<Value>(head).expect("a head is JSON")["key"].as_str().map(str::to_owned);
        (heads.len(), heads.iter().filter_map(key).collect::<HashSet<String>>().len())
    }
}
