use std::{collections::HashSet, path::Path};

use serde_json::Value;
use store::StoreResult;
use store_dynamodb::{Address, DynamodbDatabase};
use store_partitioned::{Columns, Consistency, Database as _, Partition, Range, Row};

use super::{Database, Finished, Pending};

const NO_STATEMENTS: &str = "DynamoDB knows no statements: what needs them is shown on other stores";

pub struct Dynamodb {
    url: String,
}

impl Dynamodb {
    pub const fn at(url: String) -> Self {
        Self { url }
    }

    /// The rows of timers, read past the service.
    async fn timers(&self) -> StoreResult<Vec<Row>> {
        let address = Address::parse(&self.url).expect("a URL of DynamoDB");
        let database = DynamodbDatabase::connect(&address).await.expect("a DynamoDB that answers");
        let mut rows = Vec::new();
        for shard in 0..address.shards() {
            let partition = Partition::new(format!("timers-{shard}"));
            rows.extend(database.range(&partition, &Range::all(1_000_000), Columns::HEAD, Consistency::Committed).await?);
        }
        Ok(rows)
    }
}

impl Database for Dynamodb {
    fn name(&self) -> &'static str {
        "DynamoDB"
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn execute(&self, _statements: &str) {
        panic!("{NO_STATEMENTS}");
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let rows = std::thread::scope(|scope| {
            let read = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(self.timers()).expect("the rows of timers")
            };
            scope.spawn(read).join().expect("a thread that reads")
        });
        let key =
            |row: &Row| serde_json::from_slice::<Value>(&row.head).expect("a head is JSON")["key"].as_str().map(str::to_owned);
        (rows.len(), rows.iter().filter_map(key).collect::<HashSet<String>>().len())
    }

    fn back_up(&self, _file: &Path) {
        panic!("{NO_STATEMENTS}");
    }

    fn restored(&self, _file: &Path) -> Box<dyn Database> {
        panic!("{NO_STATEMENTS}");
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        panic!("{NO_STATEMENTS}");
    }

    fn copy_pending(&self, _copies: &Pending) -> String {
        panic!("{NO_STATEMENTS}");
    }

    fn copy_finished(&self, _copies: &Finished) -> String {
        panic!("{NO_STATEMENTS}");
    }

    fn forget_the_copied(&self) -> String {
        panic!("{NO_STATEMENTS}");
    }

    fn complete_what_is_due(&self, _id: &str, _at: i64) -> String {
        panic!("{NO_STATEMENTS}");
    }

    fn damage(&self, _id: &str) -> String {
        panic!("{NO_STATEMENTS}");
    }
}
