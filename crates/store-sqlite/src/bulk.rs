//! Finding and canceling many at once.

use domain::{JsonText, Status, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql};
use store::Filter;
use store_sql::{column, sql};

use crate::{
    change::Canceling,
    failure::Failure,
    read::{self, Walk},
    rows::Id,
    tally::Tally,
    writer::Write,
};

pub const METADATA: &str = sql!("sql/metadata.sql");
pub const DUE_MINUTE: &str = sql!("sql/due_minute.sql");

/// Where the search for what matches starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// All timers, by id. However many match, all pages together walk through them once.
    Ids,
    /// All timers as they stand in the file, in no order: many times as fast as by id, since the id of a timer with a key
    /// is a hash.
    File,
    /// Those that have the status. Failed, canceled and expired ones stand in the order of their ids; the others must be few, for they
    /// are sorted anew for each page.
    Status(Status),
    /// The few of a namespace, to be sorted.
    Namespace,
}

impl Start {
    pub fn choose(connection: &Connection, filter: &Filter) -> Result<Self, Failure> {
        if let Some(namespace) = &filter.namespace
            && read::is_small(connection, namespace)?
        {
            return Ok(Self::Namespace);
        }
        Ok(match filter.status {
            Some(status @ (Status::Failed | Status::Canceled | Status::Expired)) => Self::Status(status),
            Some(status) if read::is_rare(connection, status)? => Self::Status(status),
            _ => Self::Ids,
        })
    }
}

pub fn matching(connection: &Connection, filter: &Filter, after: Option<TimerId>, limit: usize) -> Result<Vec<TimerId>, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let start = Start::choose(&snapshot, filter)?;
    if start == Start::Ids && filter.key_prefix.is_some() {
        // Most prefixes are those of a few. Where there are more than fit, they are met soon, here and by id.
        let mut found = matching_from(&snapshot, Start::File, filter, after, limit.saturating_add(1))?;
        if found.len() <= limit {
            found.sort_unstable();
            return Ok(found);
        }
    }
    matching_from(&snapshot, start, filter, after, limit)
}

pub fn matching_from(
    connection: &Connection,
    start: Start,
    filter: &Filter,
    after: Option<TimerId>,
    limit: usize,
) -> Result<Vec<TimerId>, Failure> {
    let (sql, parameters) = matching_statement(filter, start, after, limit);
    let mut statement = connection.prepare_cached(&sql)?;
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    let mut rows = statement.query(parameters.as_slice())?;
    let mut matches = Vec::new();
    while let Some(row) = rows.next()? {
        matches.push(row.get::<_, Id>(0)?.timer());
    }
    Ok(matches)
}

pub fn metadata(connection: &Connection, ids: &[TimerId], bytes_max: usize) -> Result<Vec<Option<JsonText>>, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(METADATA)?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for id in ids.iter().copied().map(Id::of) {
        let metadata: Option<String> =
            statement.query_row([id], |row| row.get(column!(METADATA, "metadata"))).optional()?.flatten();
        bytes += metadata.as_ref().map_or(0, String::len);
        if bytes > bytes_max && !found.is_empty() {
            break;
        }
        found.push(metadata.map(JsonText::trusted));
    }
    Ok(found)
}

pub fn matching_statement(filter: &Filter, start: Start, after: Option<TimerId>, limit: usize) -> (String, Vec<Box<dyn ToSql>>) {
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let (tables, id) = match (start, filter.status) {
        (Start::Status(status), _) => (read::tables(Some(status), Walk::Few), if status.is_finished() { "o.id" } else { "u.id" }),
        (_, Some(status)) => (read::tables(Some(status), Walk::InOrder), "d.id"),
        (_, None) => ("definition d", "d.id"),
    };
    // A sign before a column keeps SQLite from going by its index.
    let (sign, order) = if start == Start::File { ("+", String::new()) } else { ("", format!("ORDER BY {id} ")) };
    // Before every id there is the empty one, so the first page is read as any other.
    let after: Box<dyn ToSql> = match after {
        Some(after) => Box::new(Id::of(after)),
        None => Box::new([0_u8; 0]),
    };
    let mut conditions = vec![format!("{sign}{id} > {}", bind(after))];
    conditions.extend(filter.status.map(|status| read::has_status(status).to_owned()));
    conditions.extend(filter.namespace.as_ref().map(|namespace| match start {
        Start::Namespace => read::in_namespace(namespace, &mut bind),
        Start::Ids | Start::File | Start::Status(_) => {
            format!("+d.namespace = {}", bind(Box::new(namespace.as_str().to_owned())))
        }
    }));
    conditions.extend(filter.key_prefix.as_deref().map(|prefix| read::has_prefix(prefix, &mut bind)));
    let limit = bind(Box::new(i64::try_from(limit).unwrap_or(i64::MAX)));
    let conditions = conditions.join(" AND ");
    (format!("SELECT {id} FROM {tables} WHERE {conditions} {order}LIMIT {limit}"), parameters)
}

pub struct CancelAll {
    pub ids: Vec<TimerId>,
    pub now: Timestamp,
}

impl Write for CancelAll {
    type Answer = Vec<bool>;
    const NAME: &'static str = "cancel_all";

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Vec<bool>, Failure> {
        let mut due_minute = connection.prepare_cached(DUE_MINUTE)?;
        let mut canceling = Canceling::prepare(connection)?;
        let mut canceled = Vec::with_capacity(self.ids.len());
        for id in self.ids.iter().copied().map(Id::of) {
            let minute: Option<i64> = due_minute.query_row([id], |row| row.get(column!(DUE_MINUTE, "due_minute"))).optional()?;
            canceled.push(match minute {
                Some(minute) => canceling.run(minute, id, self.now, tally)?,
                None => false,
            });
        }
        Ok(canceled)
    }
}
