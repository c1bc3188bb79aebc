use std::{collections::BTreeSet, path::Path, sync::Arc};

use serde_json::Value;
use store_cassandra::{Cassandra as Cluster, CassandraOptions};
use store_partitioned::{Columns, Consistency, Database as _, Partition, Range};

use super::{Database, Finished, Pending};
use crate::rig::SHARDS;

/// A keyspace of a Cassandra. What tests do to other databases with statements they leave alone here.
pub struct Cassandra {
    url: String,
    _server: Option<Arc<throwaway::Cassandra>>,
}

impl Cassandra {
    /// `None` where there is no Cassandra to be had, which is told.
    pub fn new() -> Option<Self> {
        Some(Self { url: with_shards(&throwaway::cassandra()?.new_keyspace()), _server: None })
    }

    /// On a cluster that the test has for itself.
    pub fn on(server: &Arc<throwaway::Cassandra>) -> Self {
        Self { url: with_shards(&server.new_keyspace()), _server: Some(Arc::clone(server)) }
    }

    fn rows(&self) -> Vec<(String, Vec<u8>)> {
        let options = CassandraOptions::parse(&self.url).expect("a URL of a keyspace");
        let read = async move {
            let cluster = Cluster::connect(&options).await.expect("a Cassandra that answers");
            let mut rows = Vec::new();
            for shard in 0..SHARDS {
                let partition = Partition::new(format!("timers-{shard}"));
                let found = cluster.range(&partition, &Range::all(1_000_000), Columns::HEAD, Consistency::Committed).await;
                let found = found.expect("the rows of a partition");
                rows.extend(found.into_iter().map(|row| (partition.to_string(), row.head)));
            }
            rows
        };
        // Tests call this from within a runtime, which must not be blocked.
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        std::thread::spawn(move || runtime.block_on(read)).join().expect("the rows of a keyspace")
    }
}

/// The rig looks at as many shards as the other stores have.
fn with_shards(url: &str) -> String {
    format!("{url}&shards={SHARDS}")
}

fn has_no_statements() -> ! {
    panic!("no test does this to a Cassandra")
}

impl Database for Cassandra {
    fn name(&self) -> &'static str {
        "Cassandra"
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn execute(&self, _: &str) {
        has_no_statements()
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let rows = self.rows();
        let key = |head: &[u8]| serde_json::from_slice::<Value>(head).ok()?["key"].as_str().map(str::to_owned);
        let keys: BTreeSet<String> = rows.iter().filter_map(|(_, head)| key(head)).collect();
        (rows.len(), keys.len())
    }

    fn back_up(&self, _: &Path) {
        has_no_statements()
    }

    fn restored(&self, _: &Path) -> Box<dyn Database> {
        has_no_statements()
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        self.rows()
    }

    fn copy_pending(&self, _: &Pending) -> String {
        has_no_statements()
    }

    fn copy_finished(&self, _: &Finished) -> String {
        has_no_statements()
    }

    fn forget_the_copied(&self) -> String {
        has_no_statements()
    }

    fn complete_what_is_due(&self, _: &str, _: i64) -> String {
        has_no_statements()
    }

    fn damage(&self, _: &str) -> String {
        has_no_statements()
    }
}
