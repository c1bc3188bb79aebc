//! The text of a search. Only words of this file go into it, and numbers; texts of a client are written in hexadecimal, see
//! `parameters.rs`.
//!
//! ```text
//!   few       ids that may match, from a small index; read first, and used if they are few
//!   stretch   the timers that are looked at, in the order of the list, with whether their definitions fit
//!   found     the first of them that match, by where they stand, and the last one that was looked at
//! ```

use domain::{ADDRESS_BYTES, MetadataPath, Namespace, Status, Timestamp};
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow, types::Uuid};
use store::{Cursor, Filter, ListQuery, Order, Sort};
use store_sql::{FEW, Few, Source};

use super::{
    conditions::{in_namespaces, within},
    few::ids_of,
    parameters::Parameters,
};
use crate::{
    failure::{Failure, Step},
    rows::{Fields, Hex, json},
    session::Session,
};

/// A text with its parameters.
pub struct Statement {
    /// The ids of a few, where the source is one.
    few: Option<String>,
    text: String,
    parameters: Parameters,
    sort: Sort,
    rows_max: u64,
}

/// What a statement found.
pub struct Found {
    /// Those that match as far as the statement could tell.
    pub rows: Vec<MySqlRow>,
    pub rows_max: u64,
    /// How many timers were looked at.
    pub looked_at: u64,
    /// The last of them.
    pub last: Option<Cursor>,
}

fn number(row: &MySqlRow, column: &str) -> Result<u64, Failure> {
    row.try_get::<i64, _>(column).map(i64::unsigned_abs).or_not_done()
}

impl Statement {
    /// Answers with no rows where a few are more than that.
    pub async fn fetch(self, session: &mut Session) -> Result<Found, Failure> {
        let Self { few, text, mut parameters, sort, rows_max } = self;
        let mut answer = Found { rows: Vec::new(), rows_max, looked_at: 0, last: None };
        if let Some(few) = &few {
            let ids = Ids::fetch(session, few, &mut parameters).await?;
            answer.looked_at = ids.looked_at;
            if ids.may_match {
                answer.rows = fetch_all(session, &text, &parameters).await?;
            }
            return Ok(answer);
        }
        for row in fetch_all(session, &text, &parameters).await? {
            answer.looked_at = number(&row, "looked_at")?;
            if number(&row, "n")? == answer.looked_at {
                answer.last = Some(store_sql::cursor(&Fields(&row), sort)?);
            }
            if row.try_get("matches").or_not_done()? && (answer.rows.len() as u64) < rows_max {
                answer.rows.push(row);
            }
        }
        Ok(answer)
    }

    /// Runs a statement of [`count`]. Says how many match, how many were looked at, and the last of those.
    pub async fn count(mut self, session: &mut Session) -> Result<(u64, u64, Option<Cursor>), Failure> {
        let mut looked_at = None;
        if let Some(few) = &self.few {
            let ids = Ids::fetch(session, few, &mut self.parameters).await?;
            if !ids.may_match {
                return Ok((0, ids.looked_at, None));
            }
            looked_at = Some(ids.looked_at);
        }
        let rows = fetch_all(session, &self.text, &self.parameters).await?;
        let Some(row) = rows.first() else { return Ok((0, 0, None)) };
        let at: Option<i64> = row.try_get("last_at").or_not_done()?;
        let id: Option<Uuid> = row.try_get("last_id").or_not_done()?;
        let last = at.zip(id).map(|(at, id)| Cursor { at: Timestamp::from_micros(at), id: domain::TimerId::from_uuid(id) });
        let looked_at = looked_at.map_or_else(|| number(row, "looked_at"), Ok)?;
        Ok((number(row, "n")?, looked_at, last))
    }
}

/// What a small index knows.
struct Ids {
    looked_at: u64,
    /// There are few, and some of them may match.
    may_match: bool,
}

impl Ids {
    /// Binds those that may match as the value [`IDS`].
    async fn fetch(session: &mut Session, few: &str, parameters: &mut Parameters) -> Result<Self, Failure> {
        let rows = fetch_all(session, few, parameters).await?;
        let looked_at = rows.len() as u64;
        let mut ids = Vec::new();
        if looked_at <= FEW {
            for row in &rows {
                if row.try_get("fits").or_not_done()? {
                    ids.push(Hex(row.try_get("id").or_not_done()?));
                }
            }
        }
        parameters.set_text(IDS, &json(&ids)?);
        Ok(Self { looked_at, may_match: !ids.is_empty() })
    }
}

/// The place of the ids of a few among the parameters.
const IDS: usize = 0;

async fn fetch_all(session: &mut Session, text: &str, parameters: &Parameters) -> Result<Vec<MySqlRow>, Failure> {
    sqlx::raw_sql(AssertSqlSafe(parameters.place(text))).fetch_all(session).await.or_not_done()
}

/// The tables in which a timer with the line `t` in a stretch, or with the definition `f`, may stand.
fn standing_of(line: &str, due_at: &str) -> String {
    format!(
        "LEFT JOIN due d ON d.shard = {line}.shard AND d.at = {due_at} AND d.id = {line}.id
        LEFT JOIN outcome o ON o.id = {line}.id
        LEFT JOIN paused p ON p.id = {line}.id"
    )
}

/// Looks at the timers of a source from where the query goes on, and shows up to `rows_max` of those that match.
pub fn statement(source: &Source, query: &ListQuery, shards: u16, rows_max: u64) -> Statement {
    let mut parameters = Parameters::default();
    parameters.text("[]");
    let stands = stands(&query.filter, &mut parameters);
    let large = large_columns(&query.filter);
    if let Source::Few(few) = source {
        let (few, from) = of_few(few, query, shards, &mut parameters);
        let order_by = order_by("f", query.sort, query.order);
        let text = format!("SELECT 0 AS n, {SUMMARY_COLUMNS}{large} {from} AND {stands} ORDER BY {order_by} LIMIT {rows_max}");
        return Statement { few: Some(few), text, parameters, sort: query.sort, rows_max };
    }
    let numbered = numbered(source, query, &mut parameters);
    let standing = standing_of("t", "t.due_at");
    let text = format!(
        "SELECT t.n, t.looked_at, (t.fits AND {stands}) IS TRUE AS matches, {SUMMARY_COLUMNS}{large}
        FROM ({numbered}) t STRAIGHT_JOIN definition f ON f.id = t.id {standing}
        WHERE (t.fits AND {stands}) OR t.n = t.looked_at
        ORDER BY t.n LIMIT {}",
        rows_max.saturating_add(1)
    );
    Statement { few: None, text, parameters, sort: query.sort, rows_max }
}

/// How many of a stretch match; see [`store_sql::has_large_texts`].
pub fn count(source: &Source, query: &ListQuery, shards: u16) -> Statement {
    let mut parameters = Parameters::default();
    parameters.text("[]");
    let stands = stands(&query.filter, &mut parameters);
    if let Source::Few(few) = source {
        let (few, from) = of_few(few, query, shards, &mut parameters);
        let text = format!("SELECT COUNT(*) AS n, NULL AS last_at, NULL AS last_id {from} AND {stands}");
        return Statement { few: Some(few), text, parameters, sort: query.sort, rows_max: 1 };
    }
    let numbered = numbered(source, query, &mut parameters);
    let (standing, time) = (standing_of("t", "t.due_at"), time_of(query.sort));
    let text = format!(
        "SELECT COUNT(CASE WHEN t.fits AND {stands} THEN 1 END) AS n, COUNT(*) AS looked_at,
            MAX(CASE WHEN t.n = t.looked_at THEN t.{time} END) AS last_at,
            MAX(CASE WHEN t.n = t.looked_at THEN t.id END) AS last_id
        FROM ({numbered}) t {standing}"
    );
    Statement { few: None, text, parameters, sort: query.sort, rows_max: 1 }
}

/// What a summary is made of, with where the timer stands: see [`store_sql::Standing::of_row`].
const SUMMARY_COLUMNS: &str = "f.id, f.namespace, f.`key`, f.group_name, f.callback_type, f.correlation_id, f.execute_at, \
    f.created_at, f.updated_at, f.revision, d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, \
    COALESCE(d.attempt, o.attempt, p.attempt) AS attempt, COALESCE(d.last_error, o.last_error, p.last_error) AS last_error, \
    o.status, o.executed_at, o.finished_at, p.paused_at, p.note AS pause_note";

fn large_columns(filter: &Filter) -> String {
    let metadata = if filter.reads_metadata() { ", f.metadata" } else { "" };
    let callback = if filter.destination.is_some() {
        format!(", LEFT(f.callback_config, {ADDRESS_BYTES}) AS callback")
    } else {
        String::new()
    };
    format!("{metadata}{callback}")
}

const fn time_of(sort: Sort) -> &'static str {
    match sort {
        Sort::CreatedAt => "created_at",
        Sort::ExecuteAt => "execute_at",
    }
}

fn order_by(line: &str, sort: Sort, order: Order) -> String {
    let direction = match order {
        Order::Ascending => "ASC",
        Order::Descending => "DESC",
    };
    format!("{line}.{} {direction}, {line}.id {direction}", time_of(sort))
}

/// The timers of a stretch, each with its number and with how many there are.
fn numbered(source: &Source, query: &ListQuery, parameters: &mut Parameters) -> String {
    let stretch = stretch(source, query, parameters);
    let order_by = order_by("s", query.sort, query.order);
    format!(
        "SELECT s.*, CAST(ROW_NUMBER() OVER (ORDER BY {order_by}) AS SIGNED) AS n, COUNT(*) OVER () AS looked_at FROM ({stretch}) s"
    )
}

fn stretch(source: &Source, query: &ListQuery, parameters: &mut Parameters) -> String {
    let ListQuery { filter, sort, order, after, .. } = query;
    let order_by = order_by("f", *sort, *order);
    let range = range(filter, *sort, *order, *after, parameters);
    let fits = definition_fits(filter, parameters);
    let columns = format!(
        "f.id, f.shard, f.created_at, f.execute_at, COALESCE(f.due_at, f.execute_at) AS due_at, ({fits}) IS TRUE AS fits"
    );
    let length = source.length();
    let Source::OfNamespaces { namespaces, .. } = source else {
        let index = match sort {
            Sort::CreatedAt => "definition_created",
            Sort::ExecuteAt => "definition_execute",
        };
        return format!(
            "SELECT {columns} FROM definition f FORCE INDEX ({index}) WHERE TRUE{range} ORDER BY {order_by} LIMIT {length}"
        );
    };
    let of_each = |namespace: &Namespace| {
        let namespace = parameters.bytes(namespace.as_str());
        format!(
            "(SELECT {columns} FROM definition f FORCE INDEX (definition_namespace) WHERE f.namespace = {namespace}{range}
              ORDER BY {order_by} LIMIT {length})"
        )
    };
    let of_each: Vec<_> = namespaces.iter().map(of_each).collect();
    format!("SELECT f.* FROM ({}) f ORDER BY {order_by} LIMIT {length}", of_each.join(" UNION ALL "))
}

/// The ids that a small index knows, and the timers of these ids whose definitions fit.
fn of_few(few: &Few, query: &ListQuery, shards: u16, parameters: &mut Parameters) -> (String, String) {
    let ListQuery { filter, sort, order, after, .. } = query;
    let few = format!("{} LIMIT {}", ids_of(few, shards, parameters), FEW + 1);
    let range = range(filter, *sort, *order, *after, parameters);
    let fits = definition_fits(filter, parameters);
    let standing = standing_of("f", "COALESCE(f.due_at, f.execute_at)");
    let from = format!(
        "FROM JSON_TABLE(${IDS}, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
        {standing} WHERE {fits}{range}"
    );
    (few, from)
}

/// The part of the list's order that is looked at: beyond the cursor, and within the period that is asked for.
fn range(filter: &Filter, sort: Sort, order: Order, after: Option<Cursor>, parameters: &mut Parameters) -> String {
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
        let (at, id) = (parameters.number(at.as_micros()), parameters.id(id));
        // The first condition is for the index.
        range.push_str(&format!(" AND {time} {beyond}= {at} AND ({time} {beyond} {at} OR f.id {beyond} {id})"));
    }
    range
}

/// What is asked of a definition. Of texts that only this program can read it is a condition that all that match fulfil.
fn definition_fits(filter: &Filter, parameters: &mut Parameters) -> String {
    let mut conditions = vec!["TRUE".to_owned()];
    if !filter.namespaces.is_empty() {
        conditions.push(in_namespaces(&filter.namespaces, parameters));
    }
    if let Some(key) = &filter.key {
        conditions.push(format!("f.`key` = {}", parameters.bytes(key.as_str())));
    }
    if let Some(prefix) = &filter.key_prefix {
        conditions.push(format!("LEFT(f.`key`, {}) = {}", prefix.len(), parameters.bytes(prefix)));
    }
    if let Some(group) = &filter.group {
        conditions.push(format!("f.group_name = {}", parameters.bytes(group.as_str())));
    }
    conditions.push(format!(
        "TRUE{}{}",
        within("f.execute_at", filter.due, parameters),
        within("f.created_at", filter.created, parameters)
    ));
    if let Some(id) = &filter.correlation_id {
        conditions.push(format!("f.correlation_id = {}", parameters.bytes(id.as_str())));
    }
    if let Some(destination) = &filter.destination {
        // The port of the scheme is not written, and a host has no escapes.
        let host = destination.rsplit_once(':').map_or(destination.as_str(), |(host, _)| host);
        conditions.push(mentions(&format!("LEFT(f.callback_config, {ADDRESS_BYTES})"), host, parameters));
    }
    for (path, text) in &filter.metadata {
        conditions.push(mentions("f.metadata", text, parameters));
        conditions.extend(names(path).map(|name| mentions("f.metadata", name, parameters)));
    }
    for (name, text) in &filter.members {
        conditions.push(mentions("f.metadata", name, parameters));
        // Between the tokens of anything else there may be blanks.
        if !text.starts_with(['{', '[', '"']) {
            conditions.push(mentions("f.metadata", text, parameters));
        }
    }
    conditions.join(" AND ")
}

/// The names in a path that stand in the text, which positions in arrays do not.
fn names(path: &MetadataPath) -> impl Iterator<Item = &str> {
    path.names().filter(|name| !name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a JSON text may have this in one of its strings: as it is, or written with escapes.
fn mentions(json: &str, text: &str, parameters: &mut Parameters) -> String {
    format!("(INSTR({json}, {}) > 0 OR INSTR({json}, '\\\\') > 0)", parameters.text(text))
}

/// What is asked of where a timer stands.
fn stands(filter: &Filter, parameters: &mut Parameters) -> String {
    if filter.status.is_empty() && filter.error.is_none() {
        return "TRUE".to_owned();
    }
    let part = filter.error.as_deref().map(|part| parameters.text(part));
    let error =
        |table: &str| part.as_ref().map_or_else(String::new, |part| format!(" AND INSTR({table}.last_error, {part}) > 0"));
    let asks = |status: Status| filter.status.is_empty() || filter.status.contains(&status);
    let mut places = Vec::new();
    let claim = match (asks(Status::Pending), asks(Status::Executing)) {
        (true, true) => Some(""),
        (true, false) => Some(" AND d.claim IS NULL"),
        (false, true) => Some(" AND d.claim IS NOT NULL"),
        (false, false) => None,
    };
    if let Some(claim) = claim {
        places.push(format!("(d.id IS NOT NULL{claim}{})", error("d")));
    }
    if asks(Status::Paused) {
        places.push(format!("(p.id IS NOT NULL{})", error("p")));
    }
    let ended: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_finished() && asks(*status)).collect();
    if !ended.is_empty() {
        let ended: Vec<_> = ended.iter().map(|status| format!("'{status}'")).collect();
        places.push(format!("(o.status IN ({}){})", ended.join(", "), error("o")));
    }
    format!("({})", places.join(" OR "))
}
