//! Looking at timers: one, a page of them, how many.

use domain::{Namespace, Status, Timer, TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension, ToSql};
use store::{Count, Cursor, Filter, ListQuery, Order, Page, Sort, Summary, Unreadable};
use store_sql::column;

use crate::{
    by_time,
    failure::Failure,
    rows::{Id, SUMMARY_BY_ID, SUMMARY_COLUMNS, TIMER_BY_ID, found, summary},
    tally,
};

/// Up to so many timers of a status are fetched and sorted; where there are more, walking through all timers in the
/// order of the list meets enough of them soon.
pub const FEW: u64 = 50_000;

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
    /// The few of a namespace, to be sorted.
    Namespace,
}

impl Walk {
    fn choose(connection: &Connection, query: &ListQuery) -> Result<Self, Failure> {
        let ListQuery { filter, sort, .. } = query;
        if let Some(status) = filter.status_alone()
            && is_rare(connection, status)?
        {
            return Ok(Self::Few);
        }
        // In the order of creation an index knows every namespace.
        match filter.namespace_alone() {
            Some(namespace) if *sort == Sort::ExecuteAt && is_small(connection, namespace)? => Ok(Self::Namespace),
            _ => Ok(Self::InOrder),
        }
    }
}

pub fn list(connection: &Connection, query: &ListQuery) -> Result<Page, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let walk = Walk::choose(&snapshot, query)?;
    if query.sort == Sort::ExecuteAt && walk == Walk::InOrder {
        return by_time::list(&snapshot, query);
    }
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
            Sort::CreatedAt => column!(SUMMARY_BY_ID, "created_at"),
            Sort::ExecuteAt => column!(SUMMARY_BY_ID, "execute_at"),
        })?);
        last = Some(Cursor { at, id: row.get::<_, Id>(column!(SUMMARY_BY_ID, "id"))?.timer() });
        show(&mut page, summary(row)?);
    }
    page.scanned = seen.into();
    Ok(page)
}

/// A timer that cannot be read leaves a gap, not an error.
pub fn show(page: &mut Page, summary: Result<Summary, Unreadable>) {
    match summary {
        Ok(summary) => page.timers.push(summary),
        Err(error) => tracing::warn!(error = %error, "a timer cannot be listed"),
    }
}

pub fn is_rare(connection: &Connection, status: Status) -> Result<bool, Failure> {
    Ok(tally::count(connection, &Filter { status: vec![status], ..Filter::default() })? <= FEW)
}

/// Whether a namespace has few timers. Nothing is known of the default one.
pub fn is_small(connection: &Connection, namespace: &Namespace) -> Result<bool, Failure> {
    if namespace.as_str() == Namespace::DEFAULT {
        return Ok(false);
    }
    let few = Filter { namespaces: vec![namespace.clone()], ..Filter::default() };
    Ok(tally::count(connection, &few)? <= FEW)
}

/// The text of a list and what is bound to it. One text for each combination, so that SQLite can pick the index
/// that fits and keeps the plan.
pub fn list_statement(query: &ListQuery, walk: Walk) -> (String, Vec<Box<dyn ToSql>>) {
    let ListQuery { filter, sort, order, limit, offset, after, .. } = query;
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let mut conditions = vec!["TRUE".to_owned()];
    conditions.extend(filter.status_alone().map(|status| has_status(status).to_owned()));
    conditions.extend(filter.namespace_alone().map(|namespace| in_namespace(namespace, &mut bind)));
    conditions.extend(filter.key_prefix.as_deref().map(|prefix| has_prefix(prefix, &mut bind)));

    let direction = if *order == Order::Ascending { "ASC" } else { "DESC" };
    let beyond = if *order == Order::Ascending { ">" } else { "<" };
    let time = match sort {
        Sort::CreatedAt => "d.created_at",
        Sort::ExecuteAt => "d.execute_at",
    };
    if let Some(Cursor { at, id }) = after {
        let (micros, id) = (bind(Box::new(at.as_micros())), bind(Box::new(Id::of(*id))));
        conditions.push(format!("({time}, d.id) {beyond} ({micros}, {id})"));
    }
    let one_more = bind(Box::new(i64::from(*limit) + 1));
    let offset = bind(Box::new(i64::try_from(*offset).unwrap_or(i64::MAX)));
    let tables = tables(filter.status_alone(), walk);
    let conditions = conditions.join(" AND ");
    let order = format!("ORDER BY {time} {direction}, d.id {direction}");
    (format!("SELECT {SUMMARY_COLUMNS} FROM {tables} WHERE {conditions} {order} LIMIT {one_more} OFFSET {offset}"), parameters)
}

/// CROSS JOIN is SQLite's word for "in this order".
pub const fn tables(status: Option<Status>, walk: Walk) -> &'static str {
    match (status, walk) {
        (Some(Status::Executing), Walk::Few) => {
            "due u INDEXED BY due_claimed CROSS JOIN definition d ON d.id = u.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
        }
        (Some(Status::Pending), Walk::Few) => {
            "due u CROSS JOIN definition d ON d.id = u.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
        }
        (Some(Status::Pending | Status::Executing), _) => {
            "definition d CROSS JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
        }
        (Some(Status::Paused), Walk::Few) => {
            "paused p CROSS JOIN definition d ON d.id = p.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id"
        }
        (Some(Status::Paused), _) => {
            "definition d CROSS JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id"
        }
        (Some(_), Walk::Few) => {
            "outcome o CROSS JOIN definition d ON d.id = o.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
        }
        (Some(_), _) => {
            "definition d CROSS JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id \
             LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
        }
        (None, _) => {
            "definition d LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id \
             LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id \
             LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id"
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
        Status::Paused => "p.id IS NOT NULL",
        Status::Expired => "o.status = 'expired'",
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
    let Some(prefix) = &filter.key_prefix else { return tally::count(connection, filter).map(Count::exactly) };
    let snapshot = connection.unchecked_transaction()?;
    let walk = match (filter.status_alone(), filter.namespace_alone()) {
        (_, Some(namespace)) if is_small(&snapshot, namespace)? => Walk::Namespace,
        (Some(status), _) if is_rare(&snapshot, status)? => Walk::Few,
        _ => Walk::InOrder,
    };
    let (sql, parameters) = count_statement(filter, prefix, walk);
    let mut statement = snapshot.prepare_cached(&sql)?;
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    let count: i64 = statement.query_row(parameters.as_slice(), |row| row.get(0))?;
    Ok(Count::exactly(count.unsigned_abs()))
}

/// Those with the prefix, counted one by one.
pub fn count_statement(filter: &Filter, prefix: &str, walk: Walk) -> (String, Vec<Box<dyn ToSql>>) {
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let tables = if filter.status_alone().is_some() { tables(filter.status_alone(), walk) } else { "definition d" };
    let mut conditions = vec![has_prefix(prefix, &mut bind)];
    conditions.extend(filter.status_alone().map(|status| has_status(status).to_owned()));
    conditions.extend(filter.namespace_alone().map(|namespace| in_namespace(namespace, &mut bind)));
    (format!("SELECT count(*) FROM {tables} WHERE {}", conditions.join(" AND ")), parameters)
}
