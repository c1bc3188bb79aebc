//! Statements that several kinds of changes make.

use store_sql::sql;

pub const RESET_DUE: &str = sql!("sql/reset_due.sql");
pub const RESET_PAUSED: &str = sql!("sql/reset_paused.sql");
pub const REOPEN_DEFINITION: &str = sql!("sql/reopen_definition.sql");
pub const INSERT_DUE: &str = sql!("sql/insert_due.sql");
pub const DELETE_OUTCOME: &str = sql!("sql/delete_outcome.sql");
pub const DELETE_DEFINITION: &str = sql!("sql/delete_definition.sql");
