//! A database of its own for each behaviour.

use std::sync::Arc;

use domain::{TimerId, Timestamp};
use store::{OperationId, Store};
use store_mysql::{MysqlOptions, MysqlStore};
use throwaway::Mysql;

/// A store on the database at `url`, set up.
pub async fn open(url: &str) -> MysqlStore {
    let store = MysqlStore::connect(&MysqlOptions(url.to_owned())).await.unwrap();
    store.migrate().await.unwrap();
    store
}

pub struct Database {
    server: &'static Mysql,
    url: String,
}

impl Database {
    pub fn on(server: &'static Mysql) -> Self {
        Self { url: server.create_database(), server }
    }

    fn hex(id: TimerId) -> String {
        format!("UNHEX('{}')", id.as_uuid().simple())
    }

    fn damage(&self, damage: &str, id: TimerId) -> bool {
        let spoiling = format!("UPDATE {damage} WHERE id = {}; SELECT ROW_COUNT()", Self::hex(id));
        assert_eq!(self.server.query(&self.url, &spoiling), "1");
        true
    }
}

#[async_trait::async_trait]
impl store_conformance::Fixture for Database {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.url).await)
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
        let columns = "id, status, attempt, finished_at";
        let stray = format!("INSERT INTO outcome ({columns}) VALUES ({}, 'failed', 9, 0)", Self::hex(id));
        self.server.query(&self.url, &stray);
        true
    }

    async fn refuse_to_settle(&self, id: TimerId) -> bool {
        if self.server.name() == "TiDB" {
            // It has no triggers, but foreign keys.
            let refuse = format!(
                "CREATE TABLE refuse (
                     shard SMALLINT NOT NULL, at BIGINT NOT NULL, id BINARY(16) NOT NULL, FOREIGN KEY (shard, at, id) REFERENCES due (shard, at, id)
                 );
                 INSERT INTO refuse SELECT shard, at, id FROM due WHERE id = {}",
                Self::hex(id)
            );
            self.server.query(&self.url, &refuse);
            return true;
        }
        // The number of a damaged index.
        let refuse = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1712, MESSAGE_TEXT = 'this row is damaged'";
        for event in ["UPDATE", "DELETE"] {
            let trigger = format!(
                "CREATE TRIGGER refuse_{event} BEFORE {event} ON due FOR EACH ROW
                 BEGIN IF OLD.id = {} THEN {refuse}; END IF; END",
                Self::hex(id)
            );
            self.server.query(&self.url, &format!("DELIMITER //\n{trigger} //"));
        }
        true
    }
}
