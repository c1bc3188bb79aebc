//! A list in the order of `execute_at`, along the tables that are clustered by time.
//!
//! ```text
//!   due, in its order ───────────────┐
//!   due, those before a retry ───────┼─▶ merged ─▶ the page, each looked up by its id
//!   outcome, in its order ───────────┤
//!   paused, in its order ────────────┘
//! ```
//!
//! An index of the definitions by time would cost every create a page of its own.

use domain::{Namespace, Status, Timestamp};
use rusqlite::{Connection, OptionalExtension, Rows, ToSql};
use store::{Cursor, ListQuery, Order, Page, Unreadable};

use crate::{
    failure::Failure,
    read::{has_prefix, has_status, show},
    rows::{Id, SUMMARY_BY_ID, summary},
};

/// Where timers stand in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Not finished, and due at their `execute_at`.
    Due,
    /// Not finished, and due later.
    Moved,
    Finished,
    Paused,
}

impl Source {
    pub const ALL: [Self; 4] = [Self::Due, Self::Moved, Self::Finished, Self::Paused];

    /// Whether timers of the status can be here.
    pub fn holds(self, status: Option<Status>) -> bool {
        status.is_none_or(|status| match self {
            Self::Due | Self::Moved => matches!(status, Status::Pending | Status::Executing),
            Self::Finished => status.is_finished(),
            Self::Paused => status == Status::Paused,
        })
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Due => "due t",
            Self::Moved => "due t INDEXED BY due_moved",
            Self::Finished => "outcome t",
            Self::Paused => "paused t",
        }
    }

    const fn condition(self) -> &'static str {
        match self {
            Self::Due => "t.shard = 0 AND t.execute_at IS NULL",
            Self::Moved => "t.execute_at IS NOT NULL",
            Self::Finished | Self::Paused => "TRUE",
        }
    }

    const fn time(self) -> &'static str {
        match self {
            Self::Due => "t.at",
            Self::Moved | Self::Finished | Self::Paused => "t.execute_at",
        }
    }

    /// Whether the table is ordered by the minute, so that only inside a minute something is left to sort.
    const fn has_minute(self) -> bool {
        !matches!(self, Self::Moved)
    }
}

pub fn list(snapshot: &Connection, query: &ListQuery) -> Result<Page, Failure> {
    let mut statements = Vec::new();
    for source in Source::ALL.into_iter().filter(|source| source.holds(query.filter.status_alone())) {
        let (sql, parameters) = statement(query, source);
        statements.push((snapshot.prepare_cached(&sql)?, parameters));
    }
    let mut streams = Vec::with_capacity(statements.len());
    for (statement, parameters) in &mut statements {
        let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
        streams.push(Stream::start(statement.query(parameters.as_slice())?)?);
    }
    let mut by_id = snapshot.prepare_cached(SUMMARY_BY_ID)?;
    let mut page = Page::default();
    let (mut passed, mut seen, mut last) = (0, 0, None);
    while let Some(found) = next(&mut streams, query.order)? {
        if passed < query.offset {
            passed += 1;
            continue;
        }
        if seen == query.limit {
            page.next = last;
            break;
        }
        seen += 1;
        last = Some(Cursor { at: found.0, id: found.1.timer() });
        let missing = || Ok(Err(Unreadable(format!("timer {} has no definition", found.1.timer()))));
        show(&mut page, by_id.query_row([found.1], summary).optional()?.map_or_else(missing, Ok::<_, Failure>)?);
    }
    page.scanned = passed + u64::from(seen);
    Ok(page)
}

/// A time and an id, with which a list goes on.
type Place = (Timestamp, Id);

struct Stream<'statement> {
    rows: Rows<'statement>,
    first: Option<Place>,
}

impl<'statement> Stream<'statement> {
    fn start(rows: Rows<'statement>) -> rusqlite::Result<Self> {
        let mut stream = Self { rows, first: None };
        stream.step()?;
        Ok(stream)
    }

    /// What stands first, in whose place the following one comes.
    fn step(&mut self) -> rusqlite::Result<Option<Place>> {
        let following = match self.rows.next()? {
            Some(row) => Some((Timestamp::from_micros(row.get(0)?), row.get(1)?)),
            None => None,
        };
        Ok(std::mem::replace(&mut self.first, following))
    }
}

fn next(streams: &mut [Stream<'_>], order: Order) -> rusqlite::Result<Option<Place>> {
    let place = |stream: &&mut Stream<'_>| stream.first.map(|(at, id)| (at, id.timer()));
    let waiting = streams.iter_mut().filter(|stream| stream.first.is_some());
    let first = match order {
        Order::Ascending => waiting.min_by_key(place),
        Order::Descending => waiting.max_by_key(place),
    };
    first.map_or(Ok(None), Stream::step)
}

pub fn statement(query: &ListQuery, source: Source) -> (String, Vec<Box<dyn ToSql>>) {
    let ListQuery { filter, order, limit, offset, after, .. } = query;
    let mut parameters: Vec<Box<dyn ToSql>> = Vec::new();
    let mut bind = |value: Box<dyn ToSql>| {
        parameters.push(value);
        format!("?{}", parameters.len())
    };
    let (direction, beyond) = if *order == Order::Ascending { ("ASC", ">") } else { ("DESC", "<") };
    let time = source.time();
    let mut tables = source.table().to_owned();
    let mut conditions = vec![source.condition().to_owned()];
    let in_one_table = |status| has_status(status).replace("u.", "t.").replace("o.", "t.").replace("p.", "t.");
    conditions.extend(filter.status_alone().map(in_one_table));
    conditions.extend(filter.namespace_alone().map(|namespace| match namespace.as_str() {
        Namespace::DEFAULT => "t.namespace IS NULL".to_owned(),
        name => format!("t.namespace = {}", bind(Box::new(name.to_owned()))),
    }));
    if let Some(prefix) = filter.key_prefix.as_deref() {
        tables.push_str(" CROSS JOIN definition d ON d.id = t.id");
        conditions.push(has_prefix(prefix, &mut bind));
    }
    if let Some(Cursor { at, id }) = after {
        if source.has_minute() {
            conditions.push(format!("t.minute {beyond}= {}", bind(Box::new(at.minute()))));
        }
        let (micros, id) = (bind(Box::new(at.as_micros())), bind(Box::new(Id::of(*id))));
        conditions.push(format!("({time}, t.id) {beyond} ({micros}, {id})"));
    }
    let minute = if source.has_minute() { format!("t.minute {direction}, ") } else { String::new() };
    // No stream has to give more than the whole page and what comes before it.
    let most = bind(Box::new(i64::try_from(offset.saturating_add(u64::from(*limit) + 1)).unwrap_or(i64::MAX)));
    let conditions = conditions.join(" AND ");
    let order = format!("ORDER BY {minute}{time} {direction}, t.id {direction}");
    (format!("SELECT {time}, t.id FROM {tables} WHERE {conditions} {order} LIMIT {most}"), parameters)
}
