//! The index by which timers of the default namespace are listed where others are in use beside it.
//!
//! In most databases every timer is in the default namespace. There such an index would know what the one of all timers knows, and every
//! create would have to write it. So it is built when the first timer of another namespace comes: at once where there are few timers, since
//! nothing else can be written meanwhile, and otherwise at the next start.

use domain::Namespace;
use rusqlite::Connection;
use store::Filter;
use store_sql::sql;

use crate::{
    failure::Failure,
    tally::{self, Tally},
    writer::Write,
};

const BUILD: &str = sql!("sql/build_default_index.sql");
const IS_THERE: &str = sql!("sql/has_default_index.sql");
const HAS_OTHER_NAMESPACES: &str = sql!("sql/has_other_namespaces.sql");
/// The maximum number of timers for which the index is built at once: that takes some tens of milliseconds.
const AT_ONCE_MAX: u64 = 10_000;

pub fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached(IS_THERE)?.query_row([], |row| row.get(0))
}

/// Whether a list of this namespace can walk along an index.
pub fn knows(connection: &Connection, namespace: &Namespace) -> rusqlite::Result<bool> {
    if namespace.as_str() == Namespace::DEFAULT { is_there(connection) } else { Ok(true) }
}

/// Builds it where it is missing, however many timers there are. Returns whether it is there.
pub fn build_at_start(connection: &Connection) -> rusqlite::Result<bool> {
    if is_there(connection)? {
        return Ok(true);
    }
    let has_others = connection.query_row(HAS_OTHER_NAMESPACES, [], |row| row.get(0))?;
    if has_others {
        tracing::info!("building an index of the timers in the default namespace");
        connection.execute_batch(BUILD)?;
    }
    Ok(has_others)
}

/// The first timer of another namespace comes.
pub struct Build;

impl Write for Build {
    type Answer = ();
    const NAME: &'static str = "build_index";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        if tally::count(connection, &Filter::default())? <= AT_ONCE_MAX {
            connection.execute_batch(BUILD)?;
        }
        Ok(())
    }
}
