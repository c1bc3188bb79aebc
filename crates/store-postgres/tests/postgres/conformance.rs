//! The contract of every store, on a database of its own for each behaviour.

use std::sync::Arc;

use domain::TimerId;
use store::Store;

struct Postgres {
    url: String,
}

impl Postgres {
    fn new() -> Self {
        Self { url: throwaway::postgres().create_database() }
    }
}

#[async_trait::async_trait]
impl store_conformance::Fixture for Postgres {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(super::open(&self.url).await)
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        Some(self.open().await)
    }

    async fn spoil(&self, id: TimerId) -> bool {
        let spoiling = format!("UPDATE definition SET callback_config = '{{' WHERE id = '{id}' RETURNING 'spoiled'");
        assert_eq!(throwaway::postgres().query(&self.url, &spoiling), "spoiled");
        true
    }
}

store_conformance::suite!(Postgres::new());
