//! Looking at timers: one, a page of them, how many.

use domain::{Namespace, Status, Timer, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql};
use store::{Cursor, Filter, ListQuery, Order, Page, Sort};

use crate::{
    failure::Failure,
    rows::{CREATED_AT, EXECUTE_AT, Id, SUMMARY_COLUMNS, TIMER_BY_ID, found, summary},
};

/// Up to so many timers of a status are fetched and sorted; where there are more, walking through all timers in the
/// order of the list meets enough of them soon.
const FEW: i64 = 10_000;

pub fn get(connection: &Connection, id: TimerId) -> Result<Option<Timer>, Failure> {
    let found = connection.prepare_cached(TIMER_BY_ID)?.query_row([Id::of(id)], found).optional()?;
    match found {
        Some(found) => Ok(Some(found?.timer.into_timer()?)),
        None => Ok(None),
    }
}

/// Where a list starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// All timers, in the order of the list.
    InOrder,
    /// The few that have the status, to be sorted.
    Few,
}

pub fn list(connection: &Connection, query: &ListQuery) -> Result<Page, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let walk = match query.filter.status {
        Some(status) if is_rare(&snapshot, status)? => Walk::Few,
        _ => Walk::InOrder,
    };
    let (sql, parameters) = list_statement(query, walk);
    let mut statement = snapshot.prepare_cached(&sql)?;
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    let mut rows = statement.query(parameters.as_slice())?;
    let mut page = Page::default();
    let mut last = None;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen == query.limit {
            page.next = last;
            break;
        }
        seen += 1;
        let at = Timestamp::from_micros(row.get(match query.sort {
            Sort::CreatedAt => CREATED_AT,
            Sort::ExecuteAt => EXECUTE_AT,
        })?);
        last = Some(Cursor { at, id: row.get::<_, Id>(0)?.timer() });
        match summary(row)? {
            Ok(summary) => page.timers.push(summary),
            Err(error) => tracing::warn!(error = %error, "a timer cannot be listed"),
        }
    }
    Ok(page)
}

fn is_rare(connection: &Connection, status: Status) -> Result<bool, Failure> {
    let few = FEW + 1;
    let sql = match status {
        // Claimed timers are at most those in delivery.
        Status::Executing => return Ok(true),
        Status::Pending => format!("SELECT count(*) FROM (SELECT 1 FROM due WHERE shard = 0 LIMIT {few})"),
        Status::Completed => format!("SELECT count(*) FROM (SELECT 1 FROM outcome LIMIT {few})"),
        Status::Failed | Status::Canceled => {
            format!("SELECT count(*) FROM (SELECT 1 FROM outcome WHERE status = '{status}' LIMIT {few})")
        }
    };
    let count: i64 = connection.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    Ok(count <= FEW)
}

/// The text of a list and what is bound to it. One text for each combination, so that SQLite can pick the index
/// that fits and keeps the plan.
pub fn list_statement(query: &ListQuery, walk: Walk) -> (String, Vec<Box<dyn ToSql>>) {
    let ListQuery { filter, sort, order, limit, offset, after } = query;
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let mut conditions = vec!["TRUE".to_owned()];
    conditions.extend(filter.status.map(|status| has_status(status).to_owned()));
    conditions.extend(filter.namespace.as_ref().map(|namespace| in_namespace(namespace, &mut bind)));

    let direction = if *order == Order::Ascending { "ASC" } else { "DESC" };
    let beyond = if *order == Order::Ascending { ">" } else { "<" };
    let order_by = match sort {
        Sort::CreatedAt => format!("d.created_at {direction}, d.id {direction}"),
        // The index knows the minute; what is inside a minute is sorted.
        Sort::ExecuteAt => format!("d.execute_minute {direction}, d.execute_at {direction}, d.id {direction}"),
    };
    if let Some(Cursor { at, id }) = after {
        let (micros, id) = (bind(Box::new(at.as_micros())), bind(Box::new(Id::of(*id))));
        conditions.push(match sort {
            Sort::CreatedAt => format!("(d.created_at, d.id) {beyond} ({micros}, {id})"),
            Sort::ExecuteAt => {
                let minute = bind(Box::new(at.minute()));
                format!("(d.execute_minute, d.execute_at, d.id) {beyond} ({minute}, {micros}, {id})")
            }
        });
    }
    let one_more = bind(Box::new(i64::from(*limit) + 1));
    let offset = bind(Box::new(i64::try_from(*offset).unwrap_or(i64::MAX)));
    let tables = tables(filter.status, walk);
    let conditions = conditions.join(" AND ");
    let sql =
        format!("SELECT {SUMMARY_COLUMNS} FROM {tables} WHERE {conditions} ORDER BY {order_by} LIMIT {one_more} OFFSET {offset}");
    (sql, parameters)
}

/// CROSS JOIN is SQLite's word for "in this order".
const fn tables(status: Option<Status>, walk: Walk) -> &'static str {
    match (status, walk) {
        (Some(Status::Pending | Status::Executing), Walk::InOrder) => {
            "definition d CROSS JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.id = u.id"
        }
        (Some(Status::Pending | Status::Executing), Walk::Few) => {
            "due u CROSS JOIN definition d ON d.id = u.id LEFT JOIN outcome o ON o.id = u.id"
        }
        (Some(_), Walk::InOrder) => {
            "definition d CROSS JOIN outcome o ON o.id = d.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id"
        }
        (Some(_), Walk::Few) => {
            "outcome o CROSS JOIN definition d ON d.id = o.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id"
        }
        (None, _) => {
            "definition d LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.id = d.id"
        }
    }
}

/// Literals, so that a partial index on a status can be used.
const fn has_status(status: Status) -> &'static str {
    match status {
        Status::Pending => "u.shard = 0 AND u.claim IS NULL",
        Status::Executing => "u.shard = 0 AND u.claim IS NOT NULL",
        Status::Completed => "o.status = 'completed'",
        Status::Failed => "o.status = 'failed'",
        Status::Canceled => "o.status = 'canceled'",
    }
}

/// The index on namespaces leaves the default one out, and is used only where the condition says so as well.
fn in_namespace(namespace: &Namespace, bind: &mut impl FnMut(Box<dyn ToSql>) -> String) -> String {
    if namespace.as_str() == Namespace::DEFAULT {
        "d.namespace = 'default'".to_owned()
    } else {
        let namespace = bind(Box::new(namespace.as_str().to_owned()));
        format!("d.namespace = {namespace} AND d.namespace <> 'default'")
    }
}

pub fn count(connection: &Connection, filter: &Filter) -> Result<u64, Failure> {
    let (sql, namespace) = count_statement(filter);
    let mut statement = connection.prepare_cached(&sql)?;
    let count: i64 = match namespace {
        Some(namespace) => statement.query_row([namespace], |row| row.get(0))?,
        None => statement.query_row([], |row| row.get(0))?,
    };
    Ok(count.unsigned_abs())
}

pub fn count_statement(filter: &Filter) -> (String, Option<String>) {
    let named = filter.namespace.as_ref().filter(|namespace| namespace.as_str() != Namespace::DEFAULT);
    let parameter = named.map(|namespace| namespace.as_str().to_owned());
    let namespace = filter.namespace.as_ref().map(|namespace| in_namespace(namespace, &mut |_| "?1".to_owned()));
    let sql = match (filter.status, namespace) {
        (None, None) => "SELECT count(*) FROM definition".to_owned(),
        (None, Some(namespace)) if named.is_some() => format!("SELECT count(*) FROM definition d WHERE {namespace}"),
        // Everything but the others: those have an index.
        (None, Some(_)) => {
            "SELECT (SELECT count(*) FROM definition) - (SELECT count(*) FROM definition WHERE namespace <> 'default')".to_owned()
        }
        (Some(status), None) => {
            let table = if status.is_finished() { "outcome o" } else { "due u" };
            format!("SELECT count(*) FROM {table} WHERE {}", has_status(status))
        }
        (Some(status), Some(namespace)) => {
            let walk = if named.is_some() { Walk::InOrder } else { Walk::Few };
            format!("SELECT count(*) FROM {} WHERE {} AND {namespace}", tables(Some(status), walk), has_status(status))
        }
    };
    (sql, parameter)
}
