//! Looking at timers: one, a page of them, how many.

use domain::{Namespace, Status, Timer, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql};
use store::{Count, Cursor, Filter, ListQuery, Order, Page, Sort};

use crate::{
    failure::Failure,
    rows::{CREATED_AT, EXECUTE_AT, Id, SUMMARY_COLUMNS, TIMER_BY_ID, found, summary},
};

/// Up to so many timers of a status are fetched and sorted; where there are more, walking through all timers in the
/// order of the list meets enough of them soon.
pub const FEW: i64 = 10_000;

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

pub fn is_rare(connection: &Connection, status: Status) -> Result<bool, Failure> {
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
    conditions.extend(filter.key_prefix.as_deref().map(|prefix| has_prefix(prefix, &mut bind)));

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
pub const fn tables(status: Option<Status>, walk: Walk) -> &'static str {
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
pub const fn has_status(status: Status) -> &'static str {
    match status {
        Status::Pending => "u.shard = 0 AND u.claim IS NULL",
        Status::Executing => "u.shard = 0 AND u.claim IS NOT NULL",
        Status::Completed => "o.status = 'completed'",
        Status::Failed => "o.status = 'failed'",
        Status::Canceled => "o.status = 'canceled'",
    }
}

/// The index on namespaces leaves the default one out, and is used only where the condition says so as well.
pub fn in_namespace(namespace: &Namespace, bind: &mut impl FnMut(Box<dyn ToSql>) -> String) -> String {
    if namespace.as_str() == Namespace::DEFAULT {
        "d.namespace = 'default'".to_owned()
    } else {
        let namespace = bind(Box::new(namespace.as_str().to_owned()));
        format!("d.namespace = {namespace} AND d.namespace <> 'default'")
    }
}

/// Character by character, without wildcards. There is no index behind it: with a million timers, one on namespace and key
/// made every create of a random key write half as many pages again (and take 40% longer), while passing over all of
/// them takes a reader about a second. Prefixes are asked for now and then; timers are created all the time.
pub fn has_prefix(prefix: &str, bind: &mut impl FnMut(Box<dyn ToSql>) -> String) -> String {
    let chars = bind(Box::new(i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX)));
    let prefix = bind(Box::new(prefix.to_owned()));
    format!("substr(d.key, 1, {chars}) = {prefix}")
}

pub fn count(connection: &Connection, filter: &Filter) -> Result<Count, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let walk = match filter.status {
        Some(status) if filter.key_prefix.is_some() && !is_rare(&snapshot, status)? => Walk::InOrder,
        _ => Walk::Few,
    };
    let (sql, parameters) = count_statement(filter, walk);
    let mut statement = snapshot.prepare_cached(&sql)?;
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    let count: i64 = statement.query_row(parameters.as_slice(), |row| row.get(0))?;
    Ok(Count::exactly(count.unsigned_abs()))
}

/// `walk` says where to start from when there is no index on what is asked for.
pub fn count_statement(filter: &Filter, walk: Walk) -> (String, Vec<Box<dyn ToSql>>) {
    let Filter { status, namespace, key_prefix } = filter;
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let is_default = namespace.as_ref().is_some_and(|namespace| namespace.as_str() == Namespace::DEFAULT);
    let tables = match (status, namespace, key_prefix) {
        // Everything but the others: those have an index.
        (None, Some(_), None) if is_default => {
            let sql = "SELECT (SELECT count(*) FROM definition) - (SELECT count(*) FROM definition WHERE namespace <> 'default')";
            return (sql.to_owned(), parameters);
        }
        (None, ..) => "definition d",
        (Some(status), None, None) => {
            if status.is_finished() {
                "outcome o"
            } else {
                "due u"
            }
        }
        (Some(status), Some(_), _) if !is_default => tables(Some(*status), Walk::InOrder),
        (Some(status), ..) => tables(Some(*status), walk),
    };
    let mut conditions = Vec::new();
    conditions.extend(status.map(|status| has_status(status).to_owned()));
    conditions.extend(namespace.as_ref().map(|namespace| in_namespace(namespace, &mut bind)));
    conditions.extend(key_prefix.as_deref().map(|prefix| has_prefix(prefix, &mut bind)));
    let condition = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    (format!("SELECT count(*) FROM {tables}{condition}"), parameters)
}
