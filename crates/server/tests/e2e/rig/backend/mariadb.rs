use std::path::Path;

use super::{Database, FORGET_THE_COPIED, Finished, Pending, two_numbers};

pub struct Mariadb {
    url: String,
}

impl Mariadb {
    pub fn new() -> Self {
        Self { url: throwaway::mariadb().create_database() }
    }
}

/// What a copy has in common with the timer it was copied from, besides its times.
const COPIED: &str =
    "namespace, `key`, callback_type, delivery, revision, fingerprint, correlation_id, retry_policy, metadata, callback_config";
/// Which shard an id is in.
const SHARD: &str = "(ASCII(SUBSTRING(c.id, 15, 1)) * 256 + ASCII(SUBSTRING(c.id, 16, 1))) % 64";

/// A table of ids and times. The expression says when the n-th is due.
fn copies(first_at: i64, count: usize, at: &str) -> String {
    format!(
        "SET SESSION max_recursive_iterations = 100000000;
         CREATE TEMPORARY TABLE copied (id BINARY(16) PRIMARY KEY, at BIGINT);
         INSERT INTO copied
           WITH RECURSIVE numbers AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {count})
           SELECT UNHEX(CONCAT(LPAD(HEX({first_at} DIV 1000 + n DIV 100), 12, '0'), '7000', LEFT(MD5(RAND()), 16))), {at}
           FROM numbers;"
    )
}

impl Database for Mariadb {
    fn name(&self) -> &'static str {
        "MariaDB"
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn execute(&self, statements: &str) {
        drop(throwaway::mariadb().query(&self.url, statements));
    }

    fn back_up(&self, file: &Path) {
        throwaway::mariadb().back_up(&self.url, file);
    }

    fn restored(&self, file: &Path) -> Box<dyn Database> {
        Box::new(Self { url: throwaway::mariadb().restored(file) })
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let counts = "SELECT count(*), count(DISTINCT `key`) FROM definition";
        two_numbers(&throwaway::mariadb().query(&self.url, counts), '\t')
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let tables = throwaway::mariadb().query(&self.url, "SHOW FULL TABLES WHERE table_type = 'BASE TABLE'");
        let names = tables.lines().filter_map(|line| line.split('\t').next());
        let read = |name: &str| throwaway::mariadb().query(&self.url, &format!("SELECT * FROM `{name}`")).into_bytes();
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
            copies(*created_at, *count, due_at)
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
            copies(*first_at, *count, &format!("{first_at} + n"))
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
