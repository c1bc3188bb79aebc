//! TiDB speaks the protocol and most of the language of MySQL, except what this file is about.
//!
//! ```text
//!   JSON_TABLE           unknown                    a table in the memory of the session, into which the rows are put first
//!   SKIP LOCKED          taken for nothing:         waits for the rows
//!                        no row is locked at all
//!   LOCK IN SHARE MODE   refused                    locks for itself alone: those who would share it go one after the other
//! ```
//!
//! Of several sessions that wait for one lock, the storage wakes one up at once and the next after a delay (`wake-up-delay-duration`, a tenth of
//! a second), and a session that waits for longer than it may gives up. So the calls of one process that lock the same shards wait for each other
//! here and not in the storage (`shard_gate.rs`): a shard has one owner, and other processes ask for it only when it is handed or taken over.
//!
//! Tables are kept in the order of their keys, a range on each server. The ids of timers rise with time, so that all creates would go to one
//! server: tables that begin with an id are divided by it ([`spread`]). `due` begins with the shard, and is spread as it is.
//!
//! All writes would queue for the one generation that they share elsewhere (`events.rs`). Here there are a few rows instead, the stripes
//! of a striped lock: each session that records events locks its own, and a reader of events locks each in turn, so that it has waited for all
//! that had begun before.

use std::{
    fmt::Write,
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use store::Unreadable;
use store_sql::sql;

use crate::literal;

/// What a database of TiDB has besides the tables of all others. Made with the migration [`TABLES_VERSION`].
pub const TABLES: &str = sql!("sql/tidb_tables.sql");
/// The one that makes `generation`.
pub const TABLES_VERSION: i32 = 7;

/// The tables whose keys begin with the id of a timer.
const TABLES_BY_ID: [&str; 4] = ["definition", "outcome", "attempt", "paused"];
/// Into how many parts they are divided. A search in the order of time looks at the first timers of each.
const PARTS: usize = 16;

/// The table whose rows are read in the order in which they were numbered. Each server has a range of numbers of its own elsewhere: a
/// reader that has seen a high one would never see the lower ones of another server.
const TABLE_BY_NUMBER: &str = "nudge";

/// The statements of a migration, with tables that are divided by the ids of their timers, and numbers that rise on all servers together.
pub fn spread(migration: &str) -> String {
    migration.split("; ").map(|statement| spread_table(statement.trim_end_matches(';'))).collect::<Vec<_>>().join("; ")
}

fn spread_table(statement: &str) -> String {
    let table = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ").and_then(|rest| rest.split(' ').next());
    match table {
        Some(table) if TABLES_BY_ID.contains(&table) => format!("{statement} PARTITION BY KEY (id) PARTITIONS {PARTS}"),
        Some(TABLE_BY_NUMBER) => format!("{statement} AUTO_ID_CACHE = 1"),
        _ => statement.to_owned(),
    }
}

/// Holds in every session. `given` has the rows that its next statement is about, one JSON text for each. The plan of a statement for many
/// shards, such as that for what is due, takes three megabytes: one that is not kept is made at every look, which takes longer than the look
/// itself. A session lives on while it is idle, because it has plans and a stripe; a transaction that is idle is rolled back.
pub const SETTINGS: &str = "SET SESSION tidb_txn_mode = 'pessimistic', SESSION tidb_plan_cache_max_plan_size = 8388608, \
     SESSION wait_timeout = 28800, SESSION tidb_idle_transaction_timeout = 10; \
     CREATE TEMPORARY TABLE IF NOT EXISTS given (n BIGINT NOT NULL PRIMARY KEY, line JSON NOT NULL)";

/// How many writes that record events go side by side. They have the numbers from 1 in `generation`. More than a process has sessions that
/// record events: each has a stripe of its own, so that a process does not wait for itself.
const STRIPES: u32 = 16;

/// The stripe of a session that is about to record its first event. Each process begins with another one.
pub fn next_stripe() -> u32 {
    static NEXT: LazyLock<AtomicU32> =
        LazyLock::new(|| AtomicU32::new(u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(0)));
    NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES + 1
}

/// Locks one of the stripes.
pub fn lock(stripe: u32) -> String {
    format!("SELECT n FROM generation WHERE n = {stripe} FOR UPDATE")
}

/// Locks each of the stripes in turn, and so waits for every write that has begun: none of them is open any more.
pub fn lock_each() -> String {
    let mut text = String::new();
    for stripe in 1..=STRIPES {
        // Writing to a text cannot fail.
        let _ = write!(text, "START TRANSACTION; {}; COMMIT; ", lock(stripe));
    }
    text
}

/// The statements that put the rows of a JSON text into `given`.
pub fn staged(json: &str) -> Result<String, Unreadable> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(json).map_err(|error| Unreadable(error.to_string()))?;
    let mut text = "DELETE FROM given".to_owned();
    for (n, row) in rows.iter().enumerate() {
        let before = if n == 0 { "; INSERT INTO given (n, line) VALUES " } else { ", " };
        // Writing to a text cannot fail.
        let _ = write!(text, "{before}({n}, CAST({} AS JSON))", literal::text(&row.to_string()));
    }
    Ok(text)
}

/// The statements in the words of TiDB; `None` where these are the same. Statements stand apart by `; `, which no value contains: those are
/// in hexadecimal.
pub fn translated(statements: &str) -> Option<String> {
    let is_foreign = ["JSON_TABLE(", "SKIP LOCKED", "LOCK IN SHARE MODE", "JOIN "].iter().any(|words| statements.contains(words));
    is_foreign.then(|| statements.split("; ").map(translate).collect::<Vec<_>>().join("; "))
}

fn translate(statement: &str) -> String {
    let statement = statement.replace("LOCK IN SHARE MODE", "FOR UPDATE").replace(" SKIP LOCKED", "");
    without_json_table(&with_hint(&statement))
}

/// Every join goes from the left to the right by an index: the planner does not know how few rows a JSON text has, and would read a whole
/// table.
fn with_hint(statement: &str) -> String {
    let joined = statement.split("JOIN ").skip(1).filter_map(|join| join.split([' ', '\n']).nth(1));
    let joined: Vec<&str> = joined.filter(|alias| alias.bytes().all(|byte| byte.is_ascii_lowercase())).collect();
    let place = ["SELECT ", "UPDATE ", "DELETE "].iter().filter_map(|verb| Some(statement.find(verb)? + verb.len())).min();
    match place {
        Some(place) if !joined.is_empty() => {
            let (verb, rest) = statement.split_at(place);
            format!("{verb}/*+ INL_JOIN({}) */ {rest}", joined.join(", "))
        }
        _ => statement.to_owned(),
    }
}

/// Puts `given` in the place of each `JSON_TABLE(text, '$[*]' COLUMNS (name TYPE PATH '$.name', …))`. A text that is written into the statement
/// is put there first; one that is bound was, see [`crate::session::Session::given`].
fn without_json_table(statement: &str) -> String {
    const CALL: &str = "JSON_TABLE(";
    const COLUMNS: &str = ", '$[*]' COLUMNS (";
    let mut parts = statement.split(CALL);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut first = String::new();
    for part in parts {
        // What is not written like this is refused by the server.
        let Some((json, rest)) = part.split_once(COLUMNS) else {
            text.push_str(CALL);
            text.push_str(part);
            continue;
        };
        let end = closing(rest);
        let (columns, rest) = rest.split_at(end);
        let rest = rest.strip_prefix("))").unwrap_or(rest);
        let columns: Vec<_> = columns.split(", ").filter_map(column).collect();
        let is_bound = if json == "?" { " WHERE ? = ''" } else { "" };
        if let Some(staged) = literal::read_text(json).and_then(|json| staged(&json).ok()) {
            first = format!("{staged}; ");
        }
        // Writing to a text cannot fail.
        let _ = write!(text, "(SELECT {} FROM given x{is_bound}){rest}", columns.join(", "));
    }
    first + &text
}

/// Where the bracket ends that is open at the beginning.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.unwrap_or(text.len())
}

/// `name TYPE PATH '$.path'` as an expression.
fn column(column: &str) -> Option<String> {
    let (name, rest) = column.trim().split_once(' ')?;
    let (kind, path) = rest.split_once(" PATH ")?;
    let value = match path.trim() {
        "'$'" => "x.line".to_owned(),
        path => format!("JSON_EXTRACT(x.line, {path})"),
    };
    let is_number = ["TINYINT", "SMALLINT", "INT", "BIGINT"].contains(&kind);
    Some(if is_number { format!("CAST({value} AS SIGNED) AS {name}") } else { format!("JSON_UNQUOTE({value}) AS {name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nudges_are_numbered_by_all_servers_together() {
        let migration = "CREATE TABLE IF NOT EXISTS nudge (n INT) ENGINE = MEMORY";
        assert_eq!(spread(migration), format!("{migration} AUTO_ID_CACHE = 1"));
    }

    #[test]
    fn only_tables_by_id_are_divided() {
        let migration =
            "CREATE TABLE IF NOT EXISTS due (shard INT); CREATE TABLE IF NOT EXISTS outcome (id INT) ENGINE = InnoDB; SELECT 1;";
        let divided = "CREATE TABLE IF NOT EXISTS outcome (id INT) ENGINE = InnoDB PARTITION BY KEY (id) PARTITIONS 16";
        assert_eq!(spread(migration), format!("CREATE TABLE IF NOT EXISTS due (shard INT); {divided}; SELECT 1"));
    }

    #[test]
    fn what_is_the_same_stays_as_it_is() {
        assert_eq!(translated("SELECT 1"), None);
    }

    #[test]
    fn rows_come_from_a_table_of_the_session() {
        let statement = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( id CHAR(32) PATH '$.id', next BIGINT PATH '$.next' )) w \
            STRAIGHT_JOIN due d ON d.id = UNHEX(w.id) SET d.at = w.next; COMMIT";
        let text = translated(statement).unwrap();
        assert!(text.starts_with("UPDATE /*+ INL_JOIN(d) */ (SELECT JSON_UNQUOTE("), "{text}");
        assert!(text.contains(
            "JSON_UNQUOTE(JSON_EXTRACT(x.line, '$.id')) AS id, CAST(JSON_EXTRACT(x.line, '$.next') AS SIGNED) AS next"
        ));
        let rest = "FROM given x WHERE ? = '') w STRAIGHT_JOIN due d ON d.id = UNHEX(w.id) SET d.at = w.next; COMMIT";
        assert!(text.ends_with(rest), "{text}");
    }

    #[test]
    fn the_elements_of_a_list_can_be_values() {
        let text = translated("SELECT w.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) w").unwrap();
        assert_eq!(text, "SELECT w.n FROM (SELECT CAST(x.line AS SIGNED) AS n FROM given x WHERE ? = '') w");
    }

    #[test]
    fn rows_in_the_text_are_put_there_first() {
        let statement = format!("SELECT w.n FROM JSON_TABLE({}, '$[*]' COLUMNS (n BIGINT PATH '$')) w", literal::text("[7,8]"));
        let staged = "DELETE FROM given; INSERT INTO given (n, line) VALUES (0, CAST(_utf8mb4 '7' AS JSON)), (1, CAST(_utf8mb4 '8' AS JSON))";
        let text = translated(&statement).unwrap();
        assert_eq!(text, format!("{staged}; SELECT w.n FROM (SELECT CAST(x.line AS SIGNED) AS n FROM given x) w"));
    }

    #[test]
    fn locks_are_taken_for_one_session_alone() {
        assert_eq!(translated("SELECT 1 FROM t LOCK IN SHARE MODE").unwrap(), "SELECT 1 FROM t FOR UPDATE");
        assert_eq!(translated("SELECT 1 FROM t FOR UPDATE SKIP LOCKED").unwrap(), "SELECT 1 FROM t FOR UPDATE");
    }

    #[test]
    fn every_statement_for_many_rows_can_be_translated() {
        let statements = [
            crate::claim::CLAIM,
            crate::claim::LOCK_CLAIMABLE,
            crate::claim::READ_CLAIMED,
            crate::settle::FINISH,
            crate::settle::LOCK_CLAIMS,
            crate::settle::POSTPONE,
            crate::attempts::INSERT_ATTEMPTS,
        ];
        for statement in statements {
            let text = translated(statement).unwrap();
            assert!(!text.contains("JSON_TABLE") && !text.contains("COLUMNS"), "{text}");
            let depth = text.bytes().fold(0, |depth, byte| depth + i32::from(byte == b'(') - i32::from(byte == b')'));
            assert_eq!(depth, 0, "{text}");
        }
    }
}
