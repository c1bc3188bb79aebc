//! The contract of every store, on a database of its own for each behaviour.

use std::sync::{Arc, OnceLock};

use domain::{TimerId, Timestamp};
use store::{OperationId, Store};

struct Postgres {
    url: String,
}

impl Postgres {
    /// A copy of a database that was set up once, which takes a fraction of the time of setting up one more. How that is done is tested in
    /// `setup.rs` and `upgrade.rs`.
    fn new() -> Self {
        static TEMPLATE: OnceLock<String> = OnceLock::new();
        Self { url: throwaway::postgres().copy_database(TEMPLATE.get_or_init(set_up)) }
    }

    fn damage(&self, damage: &str, id: TimerId) -> bool {
        let spoiling = format!("UPDATE {damage} WHERE id = '{id}' RETURNING 'spoiled'");
        assert_eq!(throwaway::postgres().query(&self.url, &spoiling), "spoiled");
        true
    }
}

/// A database with all tables and indexes, to which nothing is connected.
fn set_up() -> String {
    let url = throwaway::postgres().create_database();
    // A runtime of its own ends with all that runs in it, connections included.
    let setting_up = || tokio::runtime::Runtime::new().unwrap().block_on(async { drop(super::open(&url).await) });
    std::thread::scope(|scope| scope.spawn(setting_up).join().unwrap());
    url
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
        self.damage("definition SET callback_config = '{'", id)
    }

    async fn spoil_summary(&self, id: TimerId) -> bool {
        self.damage("definition SET correlation_id = ''", id)
    }

    async fn spoil_options(&self, id: TimerId) -> bool {
        self.damage("definition SET options = '{'", id)
    }

    async fn spoil_operation(&self, id: OperationId) -> bool {
        self.damage("operation SET filter = '{'", id.0)
    }

    async fn plant_outcome(&self, id: TimerId, _: Timestamp) -> bool {
        let stray = format!("INSERT INTO outcome (id, status, attempt, finished_at) VALUES ('{id}', 'failed', 9, 0)");
        throwaway::postgres().query(&self.url, &stray);
        true
    }

    async fn refuse_to_settle(&self, id: TimerId) -> bool {
        let refuse = format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'this row is damaged' USING ERRCODE = 'data_corrupted';
             END $$;
             CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON due FOR EACH ROW WHEN (old.id = '{id}') EXECUTE FUNCTION refuse()"
        );
        throwaway::postgres().query(&self.url, &refuse);
        true
    }
}

store_conformance::suite!(Postgres::new());
