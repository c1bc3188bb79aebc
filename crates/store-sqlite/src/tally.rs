//! How many timers there are, without counting them: every transaction writes down once what it has changed.

use std::collections::HashMap;

use domain::{Namespace, Status, Timestamp};
use rusqlite::{Connection, params};
use store::Filter;
use store_sql::{column, sql};

use crate::{failure::Failure, journal::Journal};

pub const ADD: &str = sql!("sql/add_to_tally.sql");
pub const FORGET_NONE: &str = sql!("sql/forget_none.sql");
pub const COUNT: &str = sql!("sql/count.sql");
pub const COUNT_NAMESPACE: &str = sql!("sql/count_namespace.sql");
pub const COUNT_STATUS: &str = sql!("sql/count_status.sql");
pub const COUNT_ALL: &str = sql!("sql/count_all.sql");

type Changes = [i64; Status::ALL.len()];

/// What the transaction that is under way has changed so far.
#[derive(Debug, Default)]
pub struct Tally {
    in_default: Changes,
    in_others: HashMap<String, Changes>,
    /// What happened in it, beside the counts.
    pub journal: Journal,
}

impl Tally {
    /// One more timer of the status; `namespace` as [`namespace_column`] gives it.
    pub fn add(&mut self, namespace: Option<&str>, status: Status) {
        self.change(namespace, status, 1);
    }

    pub fn remove(&mut self, namespace: Option<&str>, status: Status) {
        self.change(namespace, status, -1);
    }

    pub fn turn(&mut self, namespace: Option<&str>, from: Status, to: Status) {
        self.change(namespace, from, -1);
        self.change(namespace, to, 1);
    }

    fn change(&mut self, namespace: Option<&str>, status: Status, by: i64) {
        let changes = match namespace {
            None => &mut self.in_default,
            Some(name) => match self.in_others.get_mut(name) {
                Some(changes) => changes,
                None => self.in_others.entry(name.to_owned()).or_default(),
            },
        };
        changes[status as usize] += by;
    }

    /// As the last part of a transaction.
    pub fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let others = self.in_others.iter().map(|(name, changes)| (name.as_str(), changes));
        for (namespace, changes) in others.chain([(Namespace::DEFAULT, &self.in_default)]) {
            for (status, change) in Status::ALL.into_iter().zip(changes).filter(|(_, change)| **change != 0) {
                let key = (namespace, status.as_str());
                connection.prepare_cached(ADD)?.execute(params![key.0, key.1, change])?;
                // Otherwise every namespace there ever was would stay.
                if *change < 0 && namespace != Namespace::DEFAULT {
                    connection.prepare_cached(FORGET_NONE)?.execute(key)?;
                }
            }
        }
        self.clear();
        self.journal.write(connection)
    }

    /// A transaction begins at `now`, by the database's clock.
    pub fn begin(&mut self, now: Timestamp) {
        self.clear();
        self.journal.begin(now);
    }

    fn clear(&mut self) {
        self.in_default = Changes::default();
        self.in_others.clear();
    }
}

/// The default namespace, which most timers are in, takes no space in a row.
pub fn namespace_column(namespace: &str) -> Option<&str> {
    (namespace != Namespace::DEFAULT).then_some(namespace)
}

/// How many timers have one of the statuses and one of the namespaces of a filter; whatever else it asks is left aside.
pub fn count(connection: &Connection, filter: &Filter) -> Result<u64, Failure> {
    let statuses: Vec<_> = filter.status.iter().map(|status| Some(*status)).collect();
    let namespaces: Vec<_> = filter.namespaces.iter().map(Some).collect();
    let mut timers = 0;
    for namespace in if namespaces.is_empty() { &[None][..] } else { &namespaces } {
        for status in if statuses.is_empty() { &[None][..] } else { &statuses } {
            timers += count_of(connection, *namespace, *status)?;
        }
    }
    Ok(timers)
}

fn count_of(connection: &Connection, namespace: Option<&Namespace>, status: Option<Status>) -> Result<u64, Failure> {
    let status = status.map(Status::as_str);
    let timers: i64 = match (namespace.map(Namespace::as_str), status) {
        (Some(namespace), Some(status)) => {
            connection.prepare_cached(COUNT)?.query_row((namespace, status), |row| row.get(column!(COUNT, "timers")))?
        }
        (Some(namespace), None) => connection
            .prepare_cached(COUNT_NAMESPACE)?
            .query_row([namespace], |row| row.get(column!(COUNT_NAMESPACE, "timers")))?,
        (None, Some(status)) => {
            connection.prepare_cached(COUNT_STATUS)?.query_row([status], |row| row.get(column!(COUNT_STATUS, "timers")))?
        }
        (None, None) => connection.prepare_cached(COUNT_ALL)?.query_row([], |row| row.get(column!(COUNT_ALL, "timers")))?,
    };
    Ok(u64::try_from(timers).unwrap_or_default())
}
