//! TiDB speaks the protocol and most of the language of MySQL, except what this file is about.
//!
//! ```text
//!   JSON_TABLE           unknown                    a table of numbers, and what the JSON text has at each
//!   SKIP LOCKED          taken for nothing:         waits for the rows
//!                        no row is locked at all
//!   LOCK IN SHARE MODE   refused                    locks for itself alone: those who would share it go one after the other
//! ```
//!
//! All writes would queue for the one generation that they share elsewhere (`events.rs`). Here there are a few rows instead, the lanes, of
//! which a write that records events locks any one, and a reader of events locks each in turn: it has waited for all that had begun before.

use std::{
    fmt::Write,
    sync::atomic::{AtomicUsize, Ordering},
};

use domain::Timestamp;
use sqlx::{AssertSqlSafe, Row as _};
use store::Watermark;
use store_sql::sql;

use crate::{
    failure::{Failure, Step},
    session::Session,
    transaction::NOW,
};

/// What a database of TiDB has besides the tables of all others. Made with the migration [`TABLES_VERSION`].
pub const TABLES: &str = sql!("sql/tidb_tables.sql");
/// The one that makes `generation`.
pub const TABLES_VERSION: i32 = 7;

/// For every session. Statements are planned for the values at hand: a JSON text is then read once, not once for each of its rows.
pub const SETTINGS: &str = "SET SESSION tidb_enable_prepared_plan_cache = OFF, tidb_txn_mode = 'pessimistic'";

/// The rows of a statement at the most: so many numbers there are in `numbers`. More are refused.
const ROWS_MAX: usize = 16_384;

/// How many writes that record events go side by side. They have the numbers from 1 in `generation`.
const LANES: usize = 16;

/// Locks one of the lanes.
pub fn lock_lane() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    lock(NEXT.fetch_add(1, Ordering::Relaxed) % LANES + 1)
}

fn lock(lane: usize) -> String {
    format!("SELECT n FROM generation WHERE n = {lane} FOR UPDATE")
}

/// Waits for every write that has begun: none of them is open any more.
pub async fn watermark(session: &mut Session) -> Result<Watermark, Failure> {
    let at: i64 = sqlx::raw_sql(NOW).fetch_one(&mut *session).await.or_not_done()?.try_get("now").or_not_done()?;
    let mut text = String::new();
    for lane in 1..=LANES {
        // Writing to a text cannot fail.
        let _ = write!(text, "START TRANSACTION; {}; COMMIT; ", lock(lane));
    }
    sqlx::raw_sql(AssertSqlSafe(text)).execute(session).await.or_not_done()?;
    let next = at.unsigned_abs();
    Ok(Watermark { at: Timestamp::from_micros(at), open: next, next })
}

/// The statements in the words of TiDB; `None` where these are the same. Statements stand apart by `; `, which no value contains: those are
/// in hexadecimal.
pub fn translated(statements: &str) -> Option<String> {
    let is_foreign = ["JSON_TABLE(", "SKIP LOCKED", "LOCK IN SHARE MODE", "JOIN "].iter().any(|words| statements.contains(words));
    is_foreign.then(|| statements.split("; ").map(translate).collect::<Vec<_>>().join("; "))
}

fn translate(statement: &str) -> String {
    let statement = statement.replace("LOCK IN SHARE MODE", "FOR UPDATE").replace(" SKIP LOCKED", "");
    with_hint(&without_json_table(&statement))
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

/// With a table of its own in the place of each `JSON_TABLE(text, '$[*]' COLUMNS (name TYPE PATH '$.name', …))`.
fn without_json_table(statement: &str) -> String {
    const CALL: &str = "JSON_TABLE(";
    const COLUMNS: &str = ", '$[*]' COLUMNS (";
    let mut parts = statement.split(CALL);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // What is not written like this is refused by the server.
        let Some((json, rest)) = part.split_once(COLUMNS) else {
            text.push_str(CALL);
            text.push_str(part);
            continue;
        };
        let end = closing(rest);
        let (columns, rest) = (&rest[..end], rest[end..].trim_start_matches(')'));
        let columns: Vec<_> = columns.split(", ").filter_map(column).collect();
        // The text is a value of a query of its own, which is asked once, before all rows.
        let _ = write!(
            text,
            "(WITH given (doc) AS (SELECT CAST({json} AS JSON)) SELECT {} FROM (
                SELECT JSON_EXTRACT((SELECT doc FROM given), CONCAT('$[', r.n, ']')) AS one FROM numbers r
                WHERE r.n < IF(JSON_LENGTH((SELECT doc FROM given)) > {ROWS_MAX}, JSON_LENGTH('too many rows'),
                    JSON_LENGTH((SELECT doc FROM given)))
            ) x){rest}",
            columns.join(", ")
        );
    }
    text
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
        "'$'" => "x.one".to_owned(),
        path => format!("JSON_EXTRACT(x.one, {path})"),
    };
    let is_number = ["TINYINT", "SMALLINT", "INT", "BIGINT"].contains(&kind);
    Some(if is_number { format!("CAST({value} AS SIGNED) AS {name}") } else { format!("JSON_UNQUOTE({value}) AS {name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_stays_as_it_is() {
        assert_eq!(translated("SELECT 1"), None);
    }

    #[test]
    fn rows_come_from_a_table_of_numbers() {
        let statement = "UPDATE JSON_TABLE(?, '$[*]' COLUMNS ( id CHAR(32) PATH '$.id', next BIGINT PATH '$.next' )) w \
            STRAIGHT_JOIN due d ON d.id = UNHEX(w.id) SET d.at = w.next; COMMIT";
        let text = translated(statement).unwrap();
        assert!(text.starts_with("UPDATE /*+ INL_JOIN(d) */ (WITH given"), "{text}");
        assert!(text.contains("CAST(? AS JSON)") && !text.contains("JSON_TABLE"), "{text}");
        assert!(
            text.contains(
                "JSON_UNQUOTE(JSON_EXTRACT(x.one, '$.id')) AS id, CAST(JSON_EXTRACT(x.one, '$.next') AS SIGNED) AS next"
            )
        );
        assert!(text.ends_with(") x) w STRAIGHT_JOIN due d ON d.id = UNHEX(w.id) SET d.at = w.next; COMMIT"), "{text}");
    }

    #[test]
    fn the_elements_of_a_list_can_be_values() {
        let text = translated("SELECT w.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) w").unwrap();
        assert!(text.contains("SELECT CAST(x.one AS SIGNED) AS n FROM ("), "{text}");
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
