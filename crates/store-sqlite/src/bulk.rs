//! Finding and canceling many at once.

use domain::{JsonText, Namespace, Status, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use store::{Filter, Match};

use crate::{
    change::CANCEL,
    failure::Failure,
    read::{self, FEW, Walk},
    rows::Id,
    settle::DELETE_DUE,
    writer::Write,
};

pub const DUE_MINUTE: &str = "SELECT due_minute FROM definition WHERE id = ?1";
pub const OF_NAMESPACE: &str =
    "SELECT count(*) FROM (SELECT 1 FROM definition d WHERE d.namespace = ?1 AND d.namespace <> 'default' LIMIT ?2)";

/// Where the search for what matches starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// All timers, by id. However many match, all pages together walk through them once.
    Ids,
    /// All timers as they stand in the file, in no order: many times as fast as by id, since the id of a timer with a key
    /// is a hash.
    File,
    /// Those that have the status. Finished ones stand in the order of their ids; the others must be few, for they are
    /// sorted anew for each page.
    Status(Status),
    /// The few of a namespace, to be sorted.
    Namespace,
}

impl Start {
    pub fn choose(connection: &Connection, filter: &Filter) -> Result<Self, Failure> {
        if let Some(namespace) = named(filter) {
            let mut statement = connection.prepare_cached(OF_NAMESPACE)?;
            let count: i64 = statement.query_row(params![namespace.as_str(), FEW + 1], |row| row.get(0))?;
            if count <= FEW {
                return Ok(Self::Namespace);
            }
        }
        Ok(match filter.status {
            Some(status) if status.is_finished() || read::is_rare(connection, status)? => Self::Status(status),
            _ => Self::Ids,
        })
    }
}

/// The namespace that is asked for, if an index knows it.
fn named(filter: &Filter) -> Option<&Namespace> {
    filter.namespace.as_ref().filter(|namespace| namespace.as_str() != Namespace::DEFAULT)
}

pub fn matching(connection: &Connection, filter: &Filter, after: Option<TimerId>, limit: usize) -> Result<Vec<Match>, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let start = Start::choose(&snapshot, filter)?;
    if start == Start::Ids && filter.key_prefix.is_some() {
        // Most prefixes are those of a few. Where there are more than fit, they are met soon, here and by id.
        let mut found = matching_from(&snapshot, Start::File, filter, after, limit.saturating_add(1))?;
        if found.len() <= limit {
            found.sort_unstable_by_key(|found| found.id);
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
) -> Result<Vec<Match>, Failure> {
    let (sql, parameters) = matching_statement(filter, start, after, limit);
    let mut statement = connection.prepare_cached(&sql)?;
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    let mut rows = statement.query(parameters.as_slice())?;
    let mut matches = Vec::new();
    while let Some(row) = rows.next()? {
        let metadata: Option<String> = row.get(1)?;
        matches.push(Match { id: row.get::<_, Id>(0)?.timer(), metadata: metadata.map(JsonText::trusted) });
    }
    Ok(matches)
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
    (format!("SELECT {id}, d.metadata FROM {tables} WHERE {conditions} {order}LIMIT {limit}"), parameters)
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

    fn run(&self, connection: &Connection) -> Result<Vec<bool>, Failure> {
        let mut due_minute = connection.prepare_cached(DUE_MINUTE)?;
        let mut cancel = connection.prepare_cached(CANCEL)?;
        let mut delete_due = connection.prepare_cached(DELETE_DUE)?;
        let mut canceled = Vec::with_capacity(self.ids.len());
        for id in self.ids.iter().copied().map(Id::of) {
            let minute: Option<i64> = due_minute.query_row([id], |row| row.get(0)).optional()?;
            let is_canceled = match minute {
                Some(minute) => cancel.execute(params![minute, id, self.now.as_micros()])? == 1,
                None => false,
            };
            if is_canceled {
                delete_due.execute(params![minute, id])?;
            }
            canceled.push(is_canceled);
        }
        Ok(canceled)
    }
}
