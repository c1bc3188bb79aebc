use std::{ops::Deref, path::Path, sync::Arc};

use super::{Database, FORGET_THE_COPIED, Finished, Pending, two_numbers};

/// A database of MariaDB, or of a server that speaks as it does.
pub struct Mysql {
    server: Server,
    url: String,
}

/// One that the tests of this program share, or one of a test's own.
#[derive(Clone)]
pub enum Server {
    Shared(&'static throwaway::Mysql),
    Own(Arc<throwaway::Mysql>),
}

impl Deref for Server {
    type Target = throwaway::Mysql;

    fn deref(&self) -> &throwaway::Mysql {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }
}

impl Server {
    /// MariaDB, unless `MARIADB_TESTS_ON` names another one, for runs by hand: `mysql` or `tidb`.
    pub fn shared() -> Self {
        Self::Shared(match std::env::var("MARIADB_TESTS_ON").as_deref() {
            Ok("mysql") => throwaway::mysql().expect("a MySQL: scripts/setup.sh installs it"),
            Ok("tidb") => throwaway::tidb().expect("a TiDB: scripts/tidb.sh --build builds it"),
            Ok(other) => panic!("MARIADB_TESTS_ON is mysql or tidb, and not {other}"),
            Err(_) => throwaway::mariadb(),
        })
    }
}

impl Mysql {
    pub fn on(server: Server) -> Self {
        Self { url: server.create_database(), server }
    }

    /// A table of ids and times. The expression says when the n-th is due.
    fn copies(&self, first_at: i64, count: usize, at: &str) -> String {
        let rows_max = if self.server.name() == "MariaDB" { "max_recursive_iterations" } else { "cte_max_recursion_depth" };
        format!(
            "SET SESSION {rows_max} = 100000000;
             CREATE TEMPORARY TABLE copied (id BINARY(16) PRIMARY KEY, at BIGINT);
             INSERT INTO copied
               WITH RECURSIVE numbers AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count})
               SELECT UNHEX(CONCAT(LPAD(HEX({first_at} DIV 1000 + n DIV 100), 12, '0'), '7000', LEFT(MD5(RAND()), 16))), {at}
               FROM numbers;"
        )
    }
}

/// What a copy has in common with the timer it was copied from, besides its times.
const COPIED: &str =
    "namespace, `key`, callback_type, delivery, revision, fingerprint, correlation_id, retry_policy, metadata, callback_config";
/// Which shard an id is in.
const SHARD: &str = "(ASCII(SUBSTRING(c.id, 15, 1)) * 256 + ASCII(SUBSTRING(c.id, 16, 1))) % 64";

impl Database for Mysql {
    fn name(&self) -> &'static str {
        self.server.name()
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn execute(&self, statements: &str) {
        drop(self.server.query(&self.url, statements));
    }

    fn back_up(&self, file: &Path) {
        self.server.back_up(&self.url, file);
    }

    fn restored(&self, file: &Path) -> Box<dyn Database> {
        Box::new(Self { url: self.server.restored(file), server: self.server.clone() })
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let counts = "SELECT count(*), count(DISTINCT `key`) FROM definition";
        two_numbers(&self.server.query(&self.url, counts), '\t')
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let tables = self.server.query(&self.url, "SHOW FULL TABLES WHERE table_type = 'BASE TABLE'");
        let names = tables.lines().filter_map(|line| line.split('\t').next());
        let read = |name: &str| self.server.query(&self.url, &format!("SELECT * FROM `{name}`")).into_bytes();
        names.map(|name| (name.to_owned(), read(name))).collect()
    }

    fn copy_pending(&self, pending: &Pending) -> String {
        let Pending { count, created_at, due_at } = pending;
        format!(
            "{}
             INSERT INTO definition (id, shard, asked, execute_at, created_at, updated_at, {COPIED})
               SELECT c.id, {SHARD}, c.at, c.at, one.created_at, one.updated_at, {COPIED}
               FROM copied c, (SELECT created_at, updated_at, {COPIED} FROM definition LIMIT 1) AS one;
             INSERT INTO due (shard, at, id, attempt, destination)
               SELECT {SHARD}, c.at, c.id, 0, one.destination FROM copied c, (SELECT destination FROM due LIMIT 1) AS one;",
            self.copies(*created_at, *count, due_at)
        )
    }

    fn copy_finished(&self, finished: &Finished) -> String {
        let Finished { count, first_at, status } = finished;
        format!(
            "{}
             INSERT INTO definition (id, shard, asked, execute_at, created_at, updated_at, {COPIED})
               SELECT c.id, {SHARD}, c.at, c.at, c.at, c.at, {COPIED} FROM copied c, (SELECT {COPIED} FROM definition LIMIT 1) AS one;
             INSERT INTO outcome (id, status, attempt, executed_at, finished_at) SELECT id, '{status}', 1, at, at FROM copied;
             DROP TABLE copied;",
            self.copies(*first_at, *count, &format!("{first_at} + n"))
        )
    }

    fn forget_the_copied(&self) -> String {
        format!("{FORGET_THE_COPIED} ANALYZE TABLE definition, outcome;")
    }

    fn complete_what_is_due(&self, id: &str, at: i64) -> String {
        let id = bytes(id);
        format!("INSERT INTO outcome (id, status, attempt, finished_at) VALUES ({id}, 'completed', 1, {at})")
    }

    fn damage(&self, id: &str) -> String {
        let id = bytes(id);
        let refuse = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1712, MESSAGE_TEXT = 'this row is damaged'";
        format!(
            "DELIMITER //
             CREATE TRIGGER refuse BEFORE DELETE ON due FOR EACH ROW BEGIN IF OLD.id = {id} THEN {refuse}; END IF; END //"
        )
    }
}

/// An id as the server writes bytes.
fn bytes(id: &str) -> String {
    format!("x'{}'", id.replace('-', ""))
}
