use std::{collections::HashSet, path::Path};

use futures_util::TryStreamExt;
use mongodb::{
    Client,
    bson::{Document, doc},
};
use serde_json::Value;

use super::{Database, Finished, Pending};

const NO_STATEMENTS: &str = "MongoDB knows no statements: what needs them is shown on other stores";

pub struct Mongodb {
    url: String,
}

impl Mongodb {
    pub const fn at(url: String) -> Self {
        Self { url }
    }

    /// The rows of timers, read past the service.
    async fn timers(&self) -> mongodb::error::Result<Vec<Document>> {
        let rows = Client::with_uri_str(&self.url).await?.default_database().expect("a database").collection("rows");
        rows.find(doc! { "_id": { "$gte": "timers-", "$lt": "timers." } }).await?.try_collect().await
    }
}

impl Database for Mongodb {
    fn name(&self) -> &'static str {
        "MongoDB"
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
        let key = |row: &Document| {
            let head = row.get_binary_generic("head").expect("the head of a row");
            serde_json::from_slice::<Value>(head).expect("a head is JSON")["key"].as_str().map(str::to_owned)
        };
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
