//! The orders and the bounds of lists, in the words of the indexes that have them.

use domain::{Namespace, Timestamp};
use store::{Cursor, Filter, ListQuery, Order, Period, Sort};

use super::parameters::Parameters;

/// The minute in which a timer is due: all that an index knows of it.
const MINUTE: &str = "(f.execute_at / 60000000)";
/// The namespace of a timer, in the words of the index that has its timers in the order of due times.
const NAMESPACE: &str = "f.namespace COLLATE \"POSIX\"";

pub fn order_by(sort: Sort, order: Order) -> String {
    let direction = direction(order);
    match sort {
        Sort::CreatedAt => format!("f.created_at {direction}, f.id {direction}"),
        // The index knows only the minute: rows come in its order, and are sorted within it.
        Sort::ExecuteAt => format!("{MINUTE} {direction}, f.execute_at {direction}, f.id {direction}"),
    }
}

/// The part of the list's order that is looked at: beyond the cursor, and within the period that is asked for.
pub fn range(filter: &Filter, sort: Sort, order: Order, after: Option<Cursor>, parameters: &mut Parameters) -> String {
    // Both bounds: the planner finds the better one.
    let mut range = exactly(filter, sort, order, after, parameters);
    if sort == Sort::ExecuteAt {
        range.push_str(&within_minutes(filter.due, parameters));
        if let Some(Cursor { at, .. }) = after {
            let bound = match order {
                Order::Ascending => ">=",
                Order::Descending => "<=",
            };
            range.push_str(&format!(" AND {MINUTE} {bound} {} / 60000000", parameters.bind(at.as_micros())));
        }
    }
    range
}

/// The same by the exact times.
fn exactly(filter: &Filter, sort: Sort, order: Order, after: Option<Cursor>, parameters: &mut Parameters) -> String {
    let (time, period) = match sort {
        Sort::CreatedAt => ("f.created_at", filter.created),
        Sort::ExecuteAt => ("f.execute_at", filter.due),
    };
    let mut range = within(time, period, parameters);
    if let Some(Cursor { at, id }) = after {
        let beyond = match order {
            Order::Ascending => ">",
            Order::Descending => "<",
        };
        let (at, id) = (parameters.bind(at.as_micros()), parameters.bind(id.as_uuid()));
        range.push_str(&format!(" AND ({time}, f.id) {beyond} ({at}, {id})"));
    }
    range
}

/// The part of the list's order that is looked at within a namespace, and how that order is asked for.
pub fn range_in(namespace: &Namespace, query: &ListQuery, parameters: &mut Parameters) -> (String, String) {
    match query.sort {
        Sort::CreatedAt => created_in(namespace, query, parameters),
        Sort::ExecuteAt => due_in(namespace, query, parameters),
    }
}

/// In the order of creation.
///
/// The namespace is a part of the bounds and of the order, because only the index of namespaces has that order. Were it a condition for
/// equality, the planner would rather walk along the times of all namespaces where it believes that most timers are in this one, however
/// many of other namespaces it meets first.
fn created_in(namespace: &Namespace, query: &ListQuery, parameters: &mut Parameters) -> (String, String) {
    let ListQuery { filter, sort, order, after, .. } = query;
    if namespace.as_str() == Namespace::DEFAULT {
        let range = range(filter, *sort, *order, *after, parameters);
        return (format!("{}{range}", named(namespace, parameters)), order_by(*sort, *order));
    }
    let name = parameters.bind(namespace.as_str().to_owned());
    let mut bound = |time: Option<Timestamp>, comparison: &str| match time {
        Some(time) => format!("(f.namespace, f.created_at) {comparison} ({name}, {})", parameters.bind(time.as_micros())),
        None => format!("f.namespace {}= {name}", &comparison[..1]),
    };
    let (mut lower, mut upper) = (bound(filter.created.from, ">="), bound(filter.created.to, "<"));
    if let Some(Cursor { at: time, id }) = after {
        let (at, id) = (parameters.bind(time.as_micros()), parameters.bind(id.as_uuid()));
        let beyond = |comparison| format!("(f.namespace, f.created_at, f.id) {comparison} ({name}, {at}, {id})");
        // One bound at each end, the tighter one: the server would begin at any of two.
        match order {
            Order::Ascending if filter.created.from.is_none_or(|from| *time >= from) => lower = beyond(">"),
            Order::Descending if filter.created.to.is_none_or(|to| *time < to) => upper = beyond("<"),
            _ => {}
        }
    }
    (
        format!("f.namespace <> 'default' AND {lower} AND {upper}"),
        format!("f.namespace {}, {}", direction(*order), order_by(*sort, *order)),
    )
}

/// In the order of due times, as [`created_in`] and for the same reason: in bounds that only one index has. It knows the minute, so that
/// the exact times are compared, too.
fn due_in(namespace: &Namespace, query: &ListQuery, parameters: &mut Parameters) -> (String, String) {
    let ListQuery { filter, order, after, .. } = query;
    let beyond = after.map(|cursor| cursor.at);
    let (from, to) = match order {
        Order::Ascending => (filter.due.from.max(beyond), filter.due.to),
        Order::Descending => (filter.due.from, filter.due.to.into_iter().chain(beyond).min()),
    };
    let exactly = exactly(filter, Sort::ExecuteAt, *order, *after, parameters);
    let name = parameters.bind(namespace.as_str().to_owned());
    let mut bound = |time: Option<Timestamp>, comparison| match time {
        Some(time) => {
            format!("({NAMESPACE}, {MINUTE}) {comparison} ({name}, {} / 60000000)", parameters.bind(time.as_micros()))
        }
        None => format!("{NAMESPACE} {comparison} {name}"),
    };
    let (lower, upper) = (bound(from, ">="), bound(to, "<="));
    (format!("{lower} AND {upper}{exactly}"), format!("{NAMESPACE} {}, {}", direction(*order), order_by(Sort::ExecuteAt, *order)))
}

pub fn within(time: &str, period: Period, parameters: &mut Parameters) -> String {
    let from = period.from.map(|from| format!(" AND {time} >= {}", parameters.bind(from.as_micros())));
    let to = period.to.map(|to| format!(" AND {time} < {}", parameters.bind(to.as_micros())));
    format!("{}{}", from.unwrap_or_default(), to.unwrap_or_default())
}

/// Writes the condition for the index, which knows only the minute.
pub fn within_minutes(period: Period, parameters: &mut Parameters) -> String {
    let from = period.from.map(|from| format!(" AND {MINUTE} >= {} / 60000000", parameters.bind(from.as_micros())));
    let to = period.to.map(|to| format!(" AND {MINUTE} <= {} / 60000000", parameters.bind(to.as_micros())));
    format!("{}{}", from.unwrap_or_default(), to.unwrap_or_default())
}

/// The timers of a namespace, in the words of the index that knows them: the default one has an index of its own, and the planner cannot
/// see into a parameter.
pub fn named(namespace: &Namespace, parameters: &mut Parameters) -> String {
    match namespace.as_str() {
        Namespace::DEFAULT => "f.namespace = 'default'".to_owned(),
        other => format!("f.namespace = {} AND f.namespace <> 'default'", parameters.bind(other.to_owned())),
    }
}

const fn direction(order: Order) -> &'static str {
    match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    }
}
