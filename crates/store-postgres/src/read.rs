//! Reading timers: by id, as pages of a list, and how many there are.

use std::collections::HashMap;

use domain::{CorrelationId, Group, Key, Namespace, Status, TimerId, Timestamp};
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Cursor, Filter, ListQuery, Order, Page, Sort, Summary, Unreadable};
use store_sql::{Call, Met, sql};

use crate::{
    failure::{Failure, Step},
    rows::{self, Standing, shard_column},
    sessions::Sessions,
};

pub(crate) const READ: &str = sql!("sql/read.sql");

/// Timers by their ids.
pub struct Read {
    ids: Vec<Uuid>,
    shards: Vec<i16>,
}

impl Read {
    pub fn new(ids: Vec<TimerId>, shards: u16) -> Self {
        Self {
            shards: ids.iter().map(|id| shard_column(*id, shards)).collect(),
            ids: ids.into_iter().map(TimerId::as_uuid).collect(),
        }
    }
}

impl Call<Sessions> for Read {
    type Answer = HashMap<TimerId, Result<Met, Unreadable>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        if self.ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query(READ).bind(&self.ids).bind(&self.shards).fetch_all(session).await.or_not_done()?;
        rows.iter().map(|row| Ok((rows::id(row).or_not_done()?, met(row)))).collect()
    }
}

fn met(row: &PgRow) -> Result<Met, Unreadable> {
    let read = || {
        let timer = rows::timer(rows::id(row).or_not_done()?, row, Standing::of_row(row)?)?;
        Ok(Met { timer, fingerprint: rows::fingerprint(row)? })
    };
    read().map_err(|failure: Failure| match failure.error {
        store::StoreError::Corrupt(cause) => Unreadable(cause.to_string()),
        other => Unreadable(other.to_string()),
    })
}

/// One page of a list.
///
/// Where a status is asked for, the next timers in the order of the list are looked at first, as they come. Mostly the page is full
/// then. Only where few of them have that status, the server finds all that have it, and sorts them; it would guess wrong
/// which of the two is better, and read everything for one page.
pub struct List {
    pub query: ListQuery,
    pub shards: u16,
}

/// How many timers are looked at for a page: first a few, then some more. The second walk takes a fifth of a second.
const WALKS: [u64; 2] = [1_000, 50_000];

impl List {
    /// Only words of this file go into the text; every value is bound. The parameters are always the same: the two of the
    /// filter, shards, cursor time, cursor id, limit, offset. Each is named in every text, for otherwise it could not be bound.
    fn search(&self) -> String {
        let (joins, conditions, order) = (joins(&self.query.filter), conditions(&self.query.filter), self.order());
        let beyond = self.is_beyond_the_cursor();
        format!(
            "SELECT {SUMMARY_COLUMNS} FROM definition f {joins} WHERE true{conditions}{beyond} ORDER BY {order} LIMIT $6 OFFSET $7"
        )
    }

    /// The same among the next ones, with how many those are.
    fn walk(&self, length: u64) -> String {
        let filter = &self.query.filter;
        let (joins, status, order) = (joins(filter), status_condition(filter), self.order());
        let (conditions, beyond) = (definition_conditions(filter), self.is_beyond_the_cursor());
        format!(
            "WITH stretch AS MATERIALIZED (
                SELECT {STRETCH_COLUMNS} FROM definition f WHERE true{conditions}{beyond} ORDER BY {order} LIMIT {length}
            )
            SELECT {SUMMARY_COLUMNS}, (SELECT count(*) FROM stretch) AS walked
            FROM stretch f {joins} WHERE true{status} ORDER BY {order} LIMIT $6 OFFSET $7"
        )
    }

    fn order(&self) -> String {
        let direction = match self.query.order {
            Order::Ascending => "ASC",
            Order::Descending => "DESC",
        };
        match self.query.sort {
            Sort::CreatedAt => format!("f.created_at {direction}, f.id {direction}"),
            // The index knows only the minute: rows come in its order, and are sorted within it.
            Sort::ExecuteAt => format!("(f.execute_at / 60000000) {direction}, f.execute_at {direction}, f.id {direction}"),
        }
    }

    fn is_beyond_the_cursor(&self) -> String {
        if self.query.after.is_none() {
            return " AND $4::bigint IS NULL AND $5::uuid IS NULL".to_owned();
        }
        let (beyond, bound) = match self.query.order {
            Order::Ascending => (">", ">="),
            Order::Descending => ("<", "<="),
        };
        match self.query.sort {
            Sort::CreatedAt => format!(" AND (f.created_at, f.id) {beyond} ($4, $5)"),
            Sort::ExecuteAt => {
                format!(" AND (f.execute_at, f.id) {beyond} ($4, $5) AND (f.execute_at / 60000000) {bound} $4 / 60000000")
            }
        }
    }

    async fn rows(&self, statement: String, session: &mut PgConnection) -> Result<Vec<PgRow>, Failure> {
        sqlx::query(AssertSqlSafe(statement))
            .bind(namespace_column(&self.query.filter))
            .bind(key_prefix_column(&self.query.filter))
            .bind(i32::from(self.shards))
            .bind(self.query.after.map(|cursor| cursor.at.as_micros()))
            .bind(self.query.after.map(|cursor| cursor.id.as_uuid()))
            // One more than asked for tells whether there is a next page.
            .bind(i64::from(self.query.limit) + 1)
            .bind(i64::try_from(self.query.offset).unwrap_or(i64::MAX))
            .fetch_all(session)
            .await
            .or_not_done()
    }

    /// Whether a walk has found all that the page can have: it is full, or there was no more to look at.
    fn is_complete(&self, rows: &[PgRow], length: u64) -> Result<bool, Failure> {
        let Some(first) = rows.first() else { return Ok(false) };
        let walked: i64 = first.try_get("walked").or_not_done()?;
        Ok(rows.len() as u64 > u64::from(self.query.limit) || walked.unsigned_abs() < length)
    }
}

/// What of a definition a summary is made of and its place is found by.
const STRETCH_COLUMNS: &str = "f.id, f.namespace, f.key, f.group_name, f.callback_type, f.correlation_id, f.execute_at, f.due_at, f.created_at, \
                               f.updated_at, f.revision";

/// What a summary is made of, with where the timer stands: see [`Standing::of_row`].
const SUMMARY_COLUMNS: &str = "f.id, f.namespace, f.key, f.group_name, f.callback_type, f.correlation_id, f.execute_at, f.created_at, f.updated_at, \
    f.revision, d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, coalesce(d.attempt, o.attempt, p.attempt) AS attempt, \
    coalesce(d.last_error, o.last_error, p.last_error) AS last_error, o.status, o.executed_at, o.finished_at, \
    p.paused_at, p.note AS pause_note";

/// The row in `due` of a definition. `$3` is the number of shards.
const JOIN_DUE: &str = "JOIN due d ON d.shard = ((get_byte(uuid_send(f.id), 14) * 256 + get_byte(uuid_send(f.id), 15)) % $3)::smallint \
    AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = f.id";

/// Finished timers have no row in `due` and others none in `outcome`: where the status is known, one look-up less is needed, and
/// the rare ones can be found from their own side.
fn joins(filter: &Filter) -> String {
    match filter.status_alone() {
        None => format!("LEFT {JOIN_DUE} LEFT JOIN outcome o ON o.id = f.id LEFT JOIN paused p ON p.id = f.id"),
        Some(Status::Pending) => {
            format!("{JOIN_DUE} AND d.claim IS NULL LEFT JOIN outcome o ON false LEFT JOIN paused p ON false")
        }
        Some(Status::Executing) => {
            format!("{JOIN_DUE} AND d.claim IS NOT NULL LEFT JOIN outcome o ON false LEFT JOIN paused p ON false")
        }
        Some(Status::Paused) => {
            format!("JOIN paused p ON p.id = f.id LEFT {JOIN_DUE} AND false LEFT JOIN outcome o ON false")
        }
        Some(Status::Completed | Status::Failed | Status::Canceled | Status::Expired) => {
            format!("JOIN outcome o ON o.id = f.id LEFT {JOIN_DUE} AND false LEFT JOIN paused p ON false")
        }
    }
}

/// What a filter asks of a definition (`$1` its namespace, `$2` how its key begins) and of its outcome.
fn conditions(filter: &Filter) -> String {
    format!("{}{}", definition_conditions(filter), status_condition(filter))
}

/// Written out, so that the planner can see which of the indexes of `outcome` it fits.
fn status_condition(filter: &Filter) -> String {
    match filter.status_alone() {
        Some(status) if status.is_finished() => format!(" AND o.status = '{status}'"),
        _ => String::new(),
    }
}

/// The index of namespaces leaves the default one out, and the planner cannot see into `$1`.
pub const NOT_THE_DEFAULT: &str = " AND f.namespace <> 'default'";

/// No index knows the keys: every insert would have to find its place in it, for the sake of a question that is asked now and
/// then. Within a namespace, its index leads to the timers whose keys are then looked at.
pub fn definition_conditions(filter: &Filter) -> String {
    let namespace = match filter.namespace_alone() {
        None => " AND $1::text IS NULL".to_owned(),
        Some(namespace) if namespace.as_str() == Namespace::DEFAULT => " AND f.namespace = $1".to_owned(),
        Some(_) => format!(" AND f.namespace = $1{NOT_THE_DEFAULT}"),
    };
    let key_prefix = if filter.key_prefix.is_some() { " AND starts_with(f.key, $2)" } else { " AND $2::text IS NULL" };
    format!("{namespace}{key_prefix}")
}

pub fn namespace_column(filter: &Filter) -> Option<&str> {
    filter.namespace_alone().map(Namespace::as_str)
}

/// A prefix that PostgreSQL cannot take is in no key: nothing begins with NULL.
pub fn key_prefix_column(filter: &Filter) -> Option<&str> {
    filter.key_prefix.as_deref().filter(|prefix| !prefix.contains('\0'))
}

impl Call<Sessions> for List {
    type Answer = Page;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Page, Failure> {
        let walks = if !self.query.filter.status.is_empty() { WALKS.as_slice() } else { &[] };
        for &length in walks {
            let rows = self.rows(self.walk(length), session).await?;
            if self.is_complete(&rows, length)? {
                return page(&rows, &self.query);
            }
        }
        page(&self.rows(self.search(), session).await?, &self.query)
    }
}

fn page(rows: &[PgRow], query: &ListQuery) -> Result<Page, Failure> {
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let shown = &rows[..rows.len().min(limit)];
    let mut timers = Vec::with_capacity(shown.len());
    for row in shown {
        match summary(row) {
            Ok(summary) => timers.push(summary),
            Err(failure) => {
                let id = rows::id(row).or_not_done()?;
                tracing::warn!(timer.id = %id, error = %failure.error, "a stored timer cannot be listed");
            }
        }
    }
    let next = match shown.last() {
        Some(last) if rows.len() > limit => Some(cursor(last, query.sort)?),
        _ => None,
    };
    Ok(Page { scanned: timers.len() as u64, timers, next, complete: true })
}

fn cursor(row: &PgRow, sort: Sort) -> Result<Cursor, Failure> {
    let column = match sort {
        Sort::CreatedAt => "created_at",
        Sort::ExecuteAt => "execute_at",
    };
    Ok(Cursor { at: timestamp(row, column)?, id: rows::id(row).or_not_done()? })
}

fn summary(row: &PgRow) -> Result<Summary, Failure> {
    let unreadable = |invalid: domain::Invalid| Failure::from(Unreadable(invalid.to_string()));
    let text = |column| row.try_get::<Option<&str>, _>(column).or_not_done();
    let standing = Standing::of_row(row)?;
    Ok(Summary {
        id: rows::id(row).or_not_done()?,
        namespace: Namespace::parse(row.try_get("namespace").or_not_done()?).map_err(unreadable)?,
        key: text("key")?.map(Key::parse).transpose().map_err(unreadable)?,
        group: text("group_name")?.map(Group::parse).transpose().map_err(unreadable)?,
        callback_kind: row.try_get("callback_type").or_not_done()?,
        correlation_id: text("correlation_id")?.map(CorrelationId::parse).transpose().map_err(unreadable)?,
        execute_at: timestamp(row, "execute_at")?,
        status: standing.status,
        attempt: u32::try_from(standing.attempt).unwrap_or(0),
        last_error: standing.last_error,
        executed_at: standing.executed_at.map(Timestamp::from_micros),
        created_at: timestamp(row, "created_at")?,
        updated_at: standing.finished_at.map_or_else(|| timestamp(row, "updated_at"), |at| Ok(Timestamp::from_micros(at)))?,
        revision: revision(row)?,
    })
}

fn revision(row: &PgRow) -> Result<u32, Failure> {
    let revision: i64 = row.try_get("revision").or_not_done()?;
    u32::try_from(revision).map_err(|_| Unreadable("revision is out of range".to_owned()).into())
}

fn timestamp(row: &PgRow, column: &str) -> Result<Timestamp, Failure> {
    row.try_get(column).map(Timestamp::from_micros).or_not_done()
}

/// The timers of a status, from the table that knows it; beside it the definition, where that is asked as well.
pub fn whereabouts(filter: &Filter, asks_the_definition: bool) -> String {
    let (table, status) = match filter.status_alone() {
        None => return "definition f WHERE true".to_owned(),
        Some(Status::Pending) => ("due", "t.claim IS NULL".to_owned()),
        Some(Status::Executing) => ("due", "t.claim IS NOT NULL".to_owned()),
        Some(Status::Paused) => ("paused", "true".to_owned()),
        Some(ended) => ("outcome", format!("t.status = '{ended}'")),
    };
    let joined = if asks_the_definition { " JOIN definition f ON f.id = t.id" } else { "" };
    format!("{table} t{joined} WHERE {status}")
}

/// Takes space on the server's disk for a moment. A role that may not create temporary tables writes a small row instead.
pub struct Probe;

const PROBE: &str = sql!("sql/probe.sql");
const PROBE_WITHOUT_TEMPORARY_TABLES: &str = sql!("sql/probe_without_temporary_tables.sql");

const INSUFFICIENT_PRIVILEGE: &str = "42501";

impl Call<Sessions> for Probe {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        let mut probed = sqlx::raw_sql(PROBE).execute(&mut *session).await;
        let code = |error: &sqlx::Error| error.as_database_error()?.code().map(std::borrow::Cow::into_owned);
        if probed.as_ref().err().and_then(code).is_some_and(|code| code == INSUFFICIENT_PRIVILEGE) {
            probed = sqlx::raw_sql(PROBE_WITHOUT_TEMPORARY_TABLES).execute(session).await;
        }
        probed.or_not_done()?;
        Ok(())
    }
}

/// Asks whether the server answers.
pub struct Ping;

impl Call<Sessions> for Ping {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query("SELECT 1").execute(session).await.or_not_done()?;
        Ok(())
    }
}
