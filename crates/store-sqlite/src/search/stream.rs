//! Timers in the order of a list, a stretch at a time, from one or several sources.

use std::collections::VecDeque;

use domain::{Namespace, Status, Timestamp};
use rusqlite::{Connection, ToSql};
use store::{Cursor, Filter, ListQuery, Order, Period, Sort};

use super::{direction, plan::AccessPath, time_column};
use crate::{failure::Failure, rows::Id};

/// How many timers a stretch has: few at first, because a page mostly needs no more.
const STRETCH_FIRST: u64 = 128;
const STRETCH_MAX: u64 = 8_192;
/// The same where a time of creation is asked for, which earlier versions wrote into the definition only.
const STRETCH_LOOKED_UP_MAX: u64 = 1_024;

/// Where a timer stands in a list, and whether it is worth a closer look.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub at: Timestamp,
    pub id: Id,
    pub may_fit: bool,
}

impl Place {
    fn cursor(&self) -> Cursor {
        Cursor { at: self.at, id: self.id.timer() }
    }
}

/// Several streams as one, in the order of the list.
pub struct Merged<'c> {
    streams: Vec<Stream<'c>>,
    order: Order,
}

impl<'c> Merged<'c> {
    pub fn new(connection: &'c Connection, paths: Vec<AccessPath>, query: &'c ListQuery, wanted: u64) -> Self {
        let stretch = wanted.clamp(STRETCH_FIRST, STRETCH_MAX);
        let stream =
            |path| Stream { connection, path, query, waiting: VecDeque::new(), after: query.after, stretch, is_over: false };
        Self { streams: paths.into_iter().map(stream).collect(), order: query.order }
    }

    pub fn next(&mut self) -> Result<Option<Place>, Failure> {
        for stream in &mut self.streams {
            stream.fill()?;
        }
        let first = |stream: &&mut Stream<'_>| stream.waiting.front().map(|place| (place.at, place.id.bytes()));
        let waiting = self.streams.iter_mut().filter(|stream| !stream.waiting.is_empty());
        let stream = match self.order {
            Order::Ascending => waiting.min_by_key(first),
            Order::Descending => waiting.max_by_key(first),
        };
        Ok(stream.and_then(|stream| stream.waiting.pop_front()))
    }

    /// How many timers have been read and are still to come.
    pub fn waiting(&self) -> u64 {
        self.streams.iter().map(|stream| stream.waiting.len() as u64).sum()
    }

    pub fn is_at_end(&mut self) -> Result<bool, Failure> {
        for stream in &mut self.streams {
            stream.fill()?;
        }
        Ok(self.streams.iter().all(|stream| stream.waiting.is_empty()))
    }
}

struct Stream<'c> {
    connection: &'c Connection,
    path: AccessPath,
    query: &'c ListQuery,
    waiting: VecDeque<Place>,
    after: Option<Cursor>,
    stretch: u64,
    is_over: bool,
}

impl Stream<'_> {
    fn fill(&mut self) -> Result<(), Failure> {
        if self.is_over || !self.waiting.is_empty() {
            return Ok(());
        }
        let most = if self.path.is_sorted_anew(self.query.sort) { u64::MAX } else { self.stretch };
        let (sql, parameters) = statement(&self.path, self.query, self.after, most);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
        let mut rows = statement.query(parameters.as_slice())?;
        while let Some(row) = rows.next()? {
            self.waiting.push_back(Place {
                at: Timestamp::from_micros(row.get("at")?),
                id: row.get("id")?,
                may_fit: row.get("may_fit")?,
            });
        }
        self.is_over = (self.waiting.len() as u64) < most;
        self.after = self.waiting.back().map(Place::cursor);
        let most = if self.query.filter.created.is_always() { STRETCH_MAX } else { STRETCH_LOOKED_UP_MAX };
        self.stretch = (self.stretch * 2).min(most);
        Ok(())
    }
}

/// Conditions and what is bound to them.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    parameters: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    fn bind(&mut self, value: impl ToSql + 'static) -> String {
        self.parameters.push(Box::new(value));
        format!("?{}", self.parameters.len())
    }

    fn add(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    fn within(&mut self, time: &str, period: &Period) {
        let from = period.from.map(|from| format!("{time} >= {}", self.bind(from.as_micros())));
        let to = period.to.map(|to| format!("{time} < {}", self.bind(to.as_micros())));
        self.texts.extend(from.into_iter().chain(to));
    }

    /// Whether a time is in a period that is asked for. The time is evaluated once.
    fn is_within(&mut self, time: &str, period: &Period) -> String {
        if period.is_always() {
            return "1".to_owned();
        }
        let from = self.bind(period.from.map_or(i64::MIN, Timestamp::as_micros));
        let to = self.bind(period.to.map_or(i64::MAX, |to| to.as_micros().saturating_sub(1)));
        format!("{time} BETWEEN {from} AND {to}")
    }

    /// The conditions of a period for the minute by which a table is clustered.
    fn within_minutes(&mut self, period: &Period) {
        if let Some(from) = period.from {
            let from = self.bind(from.minute());
            self.add(format!("t.minute >= {from}"));
        }
        if let Some(to) = period.to {
            let to = self.bind(to.minute());
            self.add(format!("t.minute <= {to}"));
        }
    }

    /// Whether a row has one of the namespaces.
    fn in_namespaces(&mut self, namespace: &str, namespaces: &[Namespace]) -> String {
        if namespaces.is_empty() {
            return "1".to_owned();
        }
        let mut named = Vec::new();
        for namespace in namespaces {
            named.push(self.bind(namespace.as_str().to_owned()));
        }
        format!("{namespace} IN ({})", named.join(", "))
    }
}

/// The text of a stretch and what is bound to it: time, id, and whether what the row itself says fits. One text for each
/// combination, so that SQLite can pick the index that fits and keeps the plan.
pub fn statement(path: &AccessPath, query: &ListQuery, after: Option<Cursor>, most: u64) -> (String, Vec<Box<dyn ToSql>>) {
    let ListQuery { filter, sort, order, .. } = query;
    let (direction, beyond) = direction(*order);
    let mut conditions = Conditions::default();
    let Source { tables, time, id, minute, may_fit } = source(path, filter, *sort, &mut conditions);
    if let Some(Cursor { at, id: last }) = after {
        if minute {
            let bound = conditions.bind(at.minute());
            conditions.add(format!("t.minute {beyond}= {bound}"));
        }
        let (micros, last) = (conditions.bind(at.as_micros()), conditions.bind(Id::of(last)));
        conditions.add(format!("({time}, {id}) {beyond} ({micros}, {last})"));
    }
    // Rows come by the minute, so that only inside of it something is left to sort.
    let by_minute = if minute { format!("t.minute {direction}, ") } else { String::new() };
    let most = conditions.bind(i64::try_from(most).unwrap_or(i64::MAX));
    let Conditions { texts, parameters } = conditions;
    let wheres = if texts.is_empty() { "TRUE".to_owned() } else { texts.join(" AND ") };
    let order = format!("ORDER BY {by_minute}{time} {direction}, {id} {direction}");
    (
        format!("SELECT {time} AS at, {id} AS id, {may_fit} AS may_fit FROM {tables} WHERE {wheres} {order} LIMIT {most}"),
        parameters,
    )
}

/// Where a stretch is read from.
struct Source {
    tables: String,
    time: &'static str,
    id: &'static str,
    /// Whether the table is walked in the order of its minutes.
    minute: bool,
    may_fit: String,
}

fn source(path: &AccessPath, filter: &Filter, sort: Sort, conditions: &mut Conditions) -> Source {
    let plain = |tables: &str| Source {
        tables: tables.to_owned(),
        time: time_column(sort),
        id: "d.id",
        minute: false,
        may_fit: "1".to_owned(),
    };
    match path {
        AccessPath::Ids(ids) => {
            let mut bound = Vec::new();
            for id in ids {
                bound.push(conditions.bind(Id::of(*id)));
            }
            conditions.add(format!("d.id IN ({})", bound.join(", ")));
            plain("definition d")
        }
        AccessPath::Created => {
            conditions.within("d.created_at", &filter.created);
            let due = conditions.is_within("d.execute_at", &filter.due);
            let namespaces = conditions.in_namespaces("d.namespace", &filter.namespaces);
            Source { may_fit: format!("{due} AND {namespaces}"), ..plain("definition d INDEXED BY definition_created") }
        }
        AccessPath::Namespace(namespace) if namespace.as_str() == Namespace::DEFAULT => {
            conditions.add("d.namespace = 'default'");
            conditions.within("d.created_at", &filter.created);
            Source {
                may_fit: conditions.is_within("d.execute_at", &filter.due),
                ..plain("definition d INDEXED BY definition_default")
            }
        }
        AccessPath::Namespace(namespace) => {
            let bound = conditions.bind(namespace.as_str().to_owned());
            // The index leaves the default namespace out, and is used only where the condition says so as well.
            conditions.add(format!("d.namespace = {bound} AND d.namespace <> 'default'"));
            conditions.within("d.created_at", &filter.created);
            Source {
                may_fit: conditions.is_within("d.execute_at", &filter.due),
                ..plain("definition d INDEXED BY definition_namespace")
            }
        }
        AccessPath::Group(namespace, group) => {
            let namespace = conditions.bind(namespace.as_str().to_owned());
            let group = conditions.bind(group.as_str().to_owned());
            conditions.add(format!("d.namespace = {namespace} AND d.group_name = {group}"));
            let due = conditions.is_within("d.execute_at", &filter.due);
            let created = conditions.is_within("d.created_at", &filter.created);
            Source { may_fit: format!("{due} AND {created}"), ..plain("definition d INDEXED BY definition_group") }
        }
        AccessPath::Due | AccessPath::Moved | AccessPath::Finished | AccessPath::Paused => {
            by_time(path, filter, sort, conditions)
        }
        AccessPath::Status(status) => of_status(*status, filter, sort, conditions),
    }
}

/// The namespace of a row of `due`, `outcome` or `paused`: NULL is the default one.
const NAMESPACE: &str = "coalesce(t.namespace, 'default')";
/// When its timer was created. Rows that earlier versions wrote do not say it, and then its definition does; where that is missing as
/// well, it counts as older than any.
const CREATED_AT: &str = "coalesce(t.created_at, d.created_at, 0)";
/// The definition, only where [`CREATED_AT`] needs it. SQLite leaves it out where nothing of it is asked.
const DEFINITION: &str = "LEFT JOIN definition d ON d.id = iif(t.created_at IS NULL, t.id, NULL)";

/// Along the tables that are clustered by time.
fn by_time(path: &AccessPath, filter: &Filter, sort: Sort, conditions: &mut Conditions) -> Source {
    let (tables, time) = match path {
        AccessPath::Due => {
            conditions.add("t.shard = 0 AND t.execute_at IS NULL");
            ("due t", "t.at")
        }
        AccessPath::Moved => {
            conditions.add("t.execute_at IS NOT NULL");
            ("due t INDEXED BY due_moved", "t.execute_at")
        }
        AccessPath::Paused => ("paused t", "t.execute_at"),
        _ => ("outcome t", "t.execute_at"),
    };
    if *path != AccessPath::Moved {
        conditions.within_minutes(&filter.due);
    }
    conditions.within(time, &filter.due);
    let namespaces = conditions.in_namespaces(NAMESPACE, &filter.namespaces);
    let statuses: Vec<_> = filter.status.iter().filter_map(|status| standing(path, *status)).collect();
    let status = match statuses.as_slice() {
        _ if filter.status.is_empty() => "1".to_owned(),
        [] => "0".to_owned(),
        statuses => format!("({})", statuses.join(" OR ")),
    };
    let created = conditions.is_within(CREATED_AT, &filter.created);
    let may_fit = format!("{namespaces} AND {status} AND {created}");
    Source { minute: sort == Sort::ExecuteAt && *path != AccessPath::Moved, ..rows_of(tables, time, sort, may_fit) }
}

/// Those that have the status, by the index that knows them where there is one.
fn of_status(status: Status, filter: &Filter, sort: Sort, conditions: &mut Conditions) -> Source {
    let (table, time) = match status {
        Status::Executing => ("due t INDEXED BY due_claimed", "coalesce(t.execute_at, t.at)"),
        Status::Pending => ("due t", "coalesce(t.execute_at, t.at)"),
        Status::Paused => ("paused t", "t.execute_at"),
        _ => ("outcome t", "t.execute_at"),
    };
    conditions.add(match status {
        Status::Pending => "t.shard = 0 AND t.claim IS NULL".to_owned(),
        Status::Executing => "t.claim IS NOT NULL".to_owned(),
        Status::Paused => "TRUE".to_owned(),
        ended => format!("t.status = '{ended}'"),
    });
    let namespaces = conditions.in_namespaces(NAMESPACE, &filter.namespaces);
    conditions.add(namespaces);
    let due = conditions.is_within(time, &filter.due);
    let created = conditions.is_within(CREATED_AT, &filter.created);
    rows_of(table, time, sort, format!("{due} AND {created}"))
}

/// Rows of `due`, `outcome` or `paused`, whose due time is `execute_at`.
fn rows_of(table: &str, execute_at: &'static str, sort: Sort, may_fit: String) -> Source {
    let time = match sort {
        Sort::ExecuteAt => execute_at,
        Sort::CreatedAt => CREATED_AT,
    };
    Source { tables: format!("{table} {DEFINITION}"), time, id: "t.id", minute: false, may_fit }
}

/// What a row says of a status that timers can have there.
fn standing(path: &AccessPath, status: Status) -> Option<String> {
    match (path, status) {
        (AccessPath::Due | AccessPath::Moved, Status::Pending) => Some("t.claim IS NULL".to_owned()),
        (AccessPath::Due | AccessPath::Moved, Status::Executing) => Some("t.claim IS NOT NULL".to_owned()),
        (AccessPath::Paused, Status::Paused) => Some("TRUE".to_owned()),
        (AccessPath::Finished, ended) if ended.is_finished() => Some(format!("t.status = '{ended}'")),
        _ => None,
    }
}
