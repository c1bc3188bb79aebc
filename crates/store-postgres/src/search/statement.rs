//! The text of a search. Only words of this file go into it, and numbers; every text of a client is bound.
//!
//! ```text
//!   few       ids that may match, from a small index; not more than a few        (only where there is such an index)
//!   stretch   the timers that are looked at, in the order of the list, with whether their definitions fit
//!   found     the first of them that match, by where they stand
//! ```
//!
//! What is materialized is read in the order in which it was written, so that the first ones are found without looking at the rest.
//! Rows of other tables are asked for one by one, in subqueries that answer one value: a join would be planned by how many are
//! thought to match.

use std::collections::BTreeSet;

use domain::{ADDRESS_BYTES, MetadataPath, Namespace, Status, TimerId, Timestamp};
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{Cursor, Filter, ListQuery, Sort};
use store_sql::{CLAIMED_AHEAD_MICROS, EXECUTING_LOOKED_AT_MAX, FEW, Few, Source, has_large_texts};

use super::{
    parameters::Parameters,
    range::{named, order_by, range, range_in, within, within_minutes},
};
use crate::failure::{Failure, Step};

/// A text with its parameters.
pub struct Statement {
    pub text: String,
    parameters: Parameters,
    rows_max: u64,
}

/// What a statement found.
pub struct Found {
    /// Those that match as far as the statement could tell.
    pub rows: Vec<PgRow>,
    pub rows_max: u64,
    /// How many timers were looked at.
    pub looked_at: u64,
    /// The last of them.
    pub last: Option<Cursor>,
    /// How many of the source match, where the query asks for it and they are few.
    pub total: Option<u64>,
}

impl Statement {
    pub async fn fetch(self, session: &mut PgConnection) -> Result<Found, Failure> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.parameters.values()?);
        let mut rows = query.fetch_all(session).await.or_not_done()?;
        let Some(first) = rows.first() else {
            return Ok(Found { rows, rows_max: self.rows_max, looked_at: 0, last: None, total: None });
        };
        let looked_at = first.try_get::<i64, _>("looked_at").or_not_done()?.unsigned_abs();
        let at: Option<i64> = first.try_get("last_at").or_not_done()?;
        let id: Option<Uuid> = first.try_get("last_id").or_not_done()?;
        let last = at.zip(id).map(|(at, id)| Cursor { at: Timestamp::from_micros(at), id: TimerId::from_uuid(id) });
        let total = first.try_get::<Option<i64>, _>("total").or_not_done()?.map(i64::unsigned_abs);
        // There is a row in any case: without a timer when nothing was found.
        if first.try_get::<Option<i64>, _>("n").or_not_done()?.is_none() {
            rows.clear();
        }
        Ok(Found { rows, rows_max: self.rows_max, looked_at, last, total })
    }
}

/// Looks at the timers of a source from where the query goes on, and shows up to `rows_max` of those that match.
pub fn statement(source: &Source, query: &ListQuery, shards: u16, rows_max: u64) -> Statement {
    let mut parameters = Parameters::default();
    let (stretch, time) = stretch(source, query, shards, &mut parameters);
    let stands = stands(&query.filter, shards, &mut parameters);
    let large = large_columns(&query.filter);
    // What a few are, is known before they are narrowed by the cursor.
    let looked_at = if matches!(source, Source::Few(_)) { "few" } else { "stretch" };
    let total = total(source, query, &stands);
    let shard = shard_of("f.id", shards);
    let text = format!(
        "WITH {stretch},
        numbered AS MATERIALIZED (SELECT s.*, row_number() OVER () AS n FROM stretch s),
        found AS MATERIALIZED (SELECT s.id, s.n FROM numbered s WHERE s.fits{stands} LIMIT {rows_max}),
        walked AS (
            SELECT (SELECT count(*) FROM {looked_at}) AS looked_at, l.{time} AS last_at, l.id AS last_id, {total} AS total
            FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM numbered ORDER BY n DESC LIMIT 1) l ON true
        )
        SELECT w.looked_at, w.last_at, w.last_id, w.total, m.n, {SUMMARY_COLUMNS}{large}
        FROM walked w LEFT JOIN found m ON true LEFT JOIN definition f ON f.id = ANY (ARRAY[m.id])
        LEFT JOIN due d ON d.shard = ANY (ARRAY[{shard}]) AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = f.id
        LEFT JOIN outcome o ON o.id = ANY (ARRAY[m.id])
        LEFT JOIN paused p ON p.id = ANY (ARRAY[m.id])
        ORDER BY m.n"
    );
    Statement { text, parameters, rows_max }
}

/// How many of a few match, wherever the page of them begins: an expression that is `NULL` where that is not asked, or not known.
fn total(source: &Source, query: &ListQuery, stands: &str) -> String {
    let Source::Few(few) = source else { return NO_TOTAL.to_owned() };
    let all = if is_looked_up(few, &query.filter) {
        "few"
    } else if query.after.is_none() && !has_large_texts(&query.filter) {
        "numbered"
    } else {
        return NO_TOTAL.to_owned();
    };
    if query.total_within.is_none() {
        return NO_TOTAL.to_owned();
    }
    format!("(SELECT count(*) FROM {all} s WHERE s.fits{stands} AND (SELECT count(*) FROM few) <= {FEW})")
}

const NO_TOTAL: &str = "NULL::bigint";

/// Whether a few are read as definitions, each once. Those with large texts are not: these are compared only where it is known that they
/// are few.
fn is_looked_up(few: &Few, filter: &Filter) -> bool {
    !matches!(few, Few::Ids(_) | Few::Statuses(_)) && !has_large_texts(filter)
}

/// How many of a stretch match; see [`store_sql::has_large_texts`].
pub fn count(source: &Source, query: &ListQuery, shards: u16) -> Statement {
    let mut parameters = Parameters::default();
    let (stretch, time) = stretch(source, query, shards, &mut parameters);
    let stands = stands(&query.filter, shards, &mut parameters);
    let looked_at = if matches!(source, Source::Few(_)) { "few" } else { "stretch" };
    let text = format!(
        "WITH {stretch},
        numbered AS MATERIALIZED (SELECT s.*, row_number() OVER () AS n FROM stretch s)
        SELECT (SELECT count(*) FROM {looked_at}) AS looked_at, l.{time} AS last_at, l.id AS last_id,
            {NO_TOTAL} AS total, (SELECT count(*) FROM numbered s WHERE s.fits{stands}) AS n
        FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM numbered ORDER BY n DESC LIMIT 1) l ON true"
    );
    Statement { text, parameters, rows_max: 1 }
}

/// The definitions of these namespaces, or of all if there are none, in the period of the time by which the query sorts.
pub fn walked(query: &ListQuery, namespaces: &[Namespace]) -> (String, Parameters) {
    let mut parameters = Parameters::default();
    let period = match query.sort {
        Sort::CreatedAt => within("f.created_at", query.filter.created, &mut parameters),
        Sort::ExecuteAt => within_minutes(query.filter.due, &mut parameters),
    };
    let named = if namespaces.is_empty() {
        String::new()
    } else {
        let names: Vec<_> = namespaces.iter().map(|namespace| namespace.as_str().to_owned()).collect();
        format!(" AND f.namespace = ANY ({})", parameters.bind(names))
    };
    (format!("SELECT FROM definition f WHERE true{named}{period}"), parameters)
}

/// The rows to which a small index leads.
pub fn few(few: &Few, shards: u16) -> (String, Parameters) {
    let mut parameters = Parameters::default();
    (rows_of(few, "f.id", shards, i64::MAX.unsigned_abs(), &mut parameters), parameters)
}

/// What a summary is made of, with where the timer stands: see [`store_sql::Standing::of_row`].
const SUMMARY_COLUMNS: &str = "f.id, f.namespace, f.key, f.group_name, f.callback_type, f.correlation_id, f.execute_at, f.created_at, \
    f.updated_at, f.revision, d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, \
    coalesce(d.attempt, o.attempt, p.attempt) AS attempt, coalesce(d.last_error, o.last_error, p.last_error) AS last_error, \
    o.status, o.executed_at, o.finished_at, p.paused_at, p.note AS pause_note";

fn large_columns(filter: &Filter) -> String {
    let metadata = if filter.reads_metadata() { ", f.metadata" } else { "" };
    let callback = if filter.destination.is_some() {
        format!(", left(f.callback_config, {ADDRESS_BYTES}) AS callback")
    } else {
        String::new()
    };
    format!("{metadata}{callback}")
}

fn shard_of(id: &str, shards: u16) -> String {
    format!("((get_byte(uuid_send({id}), 14) * 256 + get_byte(uuid_send({id}), 15)) % {shards})::smallint")
}

/// The common table expressions up to `stretch`, and the name of the time by which the list is sorted.
fn stretch(source: &Source, query: &ListQuery, shards: u16, parameters: &mut Parameters) -> (String, &'static str) {
    let ListQuery { filter, sort, order, after, .. } = query;
    let time = match sort {
        Sort::CreatedAt => "created_at",
        Sort::ExecuteAt => "execute_at",
    };
    let order_by = order_by(*sort, *order);
    let fits = definition_fits(filter, parameters);
    let columns =
        format!("f.id, f.created_at, f.execute_at, coalesce(f.due_at, f.execute_at) AS due_at, ({fits}) IS TRUE AS fits");
    let stretch = match source {
        Source::InOrder { length } => {
            let range = range(filter, *sort, *order, *after, parameters);
            format!("SELECT {columns} FROM definition f WHERE true{range} ORDER BY {order_by} LIMIT {length}")
        }
        Source::OfNamespaces { namespaces, length } => {
            let of_each: Vec<_> = namespaces
                .iter()
                .map(|namespace| {
                    let (range, order_by) = range_in(namespace, query, parameters);
                    format!("(SELECT {columns} FROM definition f WHERE {range} ORDER BY {order_by} LIMIT {length})")
                })
                .collect();
            format!("SELECT * FROM ({}) AS f ORDER BY {order_by} LIMIT {length}", of_each.join(" UNION ALL "))
        }
        Source::Few(few) => {
            let range = range(filter, *sort, *order, *after, parameters);
            let (few, from) = if is_looked_up(few, filter) {
                (rows_of(few, &columns, shards, FEW + 1, parameters), "SELECT f.* FROM few f WHERE true".to_owned())
            } else {
                let from = format!("SELECT {columns} FROM few JOIN definition f ON f.id = ANY (ARRAY[few.id]) WHERE few.fits");
                (rows_of(few, "f.id, true AS fits", shards, FEW + 1, parameters), from)
            };
            let stretch = format!("{from} AND (SELECT count(*) FROM few) <= {FEW}{range} ORDER BY {order_by}");
            return (format!("few AS MATERIALIZED ({few} LIMIT {}), stretch AS MATERIALIZED ({stretch})", FEW + 1), time);
        }
    };
    (format!("stretch AS MATERIALIZED ({stretch})"), time)
}

/// What is asked of a definition. Of texts that only this program can read it is a condition that all that match fulfil.
fn definition_fits(filter: &Filter, parameters: &mut Parameters) -> String {
    let mut conditions = vec!["true".to_owned()];
    if !filter.namespaces.is_empty() {
        let names: Vec<_> = filter.namespaces.iter().map(|namespace| namespace.as_str().to_owned()).collect();
        conditions.push(format!("f.namespace = ANY ({})", parameters.bind(names)));
    }
    if let Some(key) = &filter.key {
        conditions.push(format!("f.key = {}", parameters.bind(key.as_str().to_owned())));
    }
    if let Some(prefix) = &filter.key_prefix {
        conditions.push(contained(prefix, parameters, |prefix| format!("starts_with(f.key, {prefix})")));
    }
    if let Some(group) = &filter.group {
        conditions.push(format!("f.group_name = {}", parameters.bind(group.as_str().to_owned())));
    }
    conditions.push(format!(
        "true{}{}",
        within("f.execute_at", filter.due, parameters),
        within("f.created_at", filter.created, parameters)
    ));
    if let Some(id) = &filter.correlation_id {
        conditions.push(format!("f.correlation_id = {}", parameters.bind(id.as_str().to_owned())));
    }
    if let Some(destination) = &filter.destination {
        // The port of the scheme is not written, and a host has no escapes.
        let host = destination.rsplit_once(':').map_or(destination.as_str(), |(host, _)| host);
        conditions.push(mentions(&format!("left(f.callback_config, {ADDRESS_BYTES})"), host, parameters));
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
    let as_it_is = contained(text, parameters, |text| format!("strpos({json}, {text}) > 0"));
    format!("({as_it_is} OR strpos({json}, '\\') > 0)")
}

/// A text that PostgreSQL cannot take is in none that it keeps.
fn contained(text: &str, parameters: &mut Parameters, condition: impl FnOnce(String) -> String) -> String {
    if text.contains('\0') { "false".to_owned() } else { condition(parameters.bind(text.to_owned())) }
}

/// What is asked of where a timer stands. `s` is its line in the stretch.
fn stands(filter: &Filter, shards: u16, parameters: &mut Parameters) -> String {
    if filter.status.is_empty() && filter.error.is_none() {
        return String::new();
    }
    let error = filter.error.as_deref();
    let error = error.map(|part| contained(part, parameters, |part| format!("strpos(t.last_error, {part}) > 0")));
    let error = error.map_or_else(String::new, |condition| format!(" AND {condition}"));
    let asks = |status: Status| filter.status.is_empty() || filter.status.contains(&status);
    let mut places = Vec::new();
    let claim = match (asks(Status::Pending), asks(Status::Executing)) {
        (true, true) => Some(""),
        (true, false) => Some(" AND t.claim IS NULL"),
        (false, true) => Some(" AND t.claim IS NOT NULL"),
        (false, false) => None,
    };
    if let Some(claim) = claim {
        let shard = shard_of("s.id", shards);
        places.push(format!(
            "(SELECT true FROM due t WHERE t.shard = {shard} AND t.at = s.due_at AND t.id = s.id{claim}{error}) IS TRUE"
        ));
    }
    if asks(Status::Paused) {
        places.push(format!("(SELECT true FROM paused t WHERE t.id = s.id{error}) IS TRUE"));
    }
    let ended: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_finished() && asks(*status)).collect();
    if !ended.is_empty() {
        let ended = list_of(&ended);
        places.push(format!("(SELECT true FROM outcome t WHERE t.id = s.id AND t.status IN ({ended}){error}) IS TRUE"));
    }
    format!(" AND ({})", places.join(" OR "))
}

fn list_of(statuses: &[Status]) -> String {
    let quoted: Vec<_> = statuses.iter().map(|status| format!("'{status}'")).collect();
    quoted.join(", ")
}

/// What a small index leads to, at most one more than a few: ids with whether they may match, or these columns of definitions.
fn rows_of(few: &Few, columns: &str, shards: u16, most: u64, parameters: &mut Parameters) -> String {
    match few {
        Few::Ids(ids) => {
            let ids: Vec<_> = ids.iter().copied().map(TimerId::as_uuid).collect();
            format!("SELECT w.id, true AS fits FROM (SELECT DISTINCT unnest({}::uuid[]) AS id) w", parameters.bind(ids))
        }
        Few::Statuses(statuses) => {
            let mut statuses = statuses.clone();
            statuses.sort_unstable();
            statuses.dedup();
            let of_each: Vec<_> =
                statuses.into_iter().map(|status| format!("({} LIMIT {most})", ids_in(status, shards))).collect();
            format!("SELECT * FROM ({}) AS w", of_each.join(" UNION ALL "))
        }
        Few::Group(namespaces, group) => {
            let names: Vec<_> = namespaces.iter().map(|namespace| namespace.as_str().to_owned()).collect();
            let (names, group) = (parameters.bind(names), parameters.bind(group.as_str().to_owned()));
            format!(
                "SELECT {columns} FROM definition f
                 WHERE f.namespace = ANY ({names}) AND f.group_name = {group} AND f.group_name IS NOT NULL"
            )
        }
        Few::Namespaces(namespaces) => {
            let of_each = |namespace: &Namespace| {
                format!("(SELECT {columns} FROM definition f WHERE {} LIMIT {most})", named(namespace, parameters))
            };
            // Each once.
            let of_each: Vec<_> = namespaces.iter().collect::<BTreeSet<_>>().into_iter().map(of_each).collect();
            format!("SELECT * FROM ({}) AS w", of_each.join(" UNION ALL "))
        }
        Few::Due(period) => {
            let minutes = within_minutes(*period, parameters);
            format!("SELECT {columns} FROM definition f WHERE true{minutes}")
        }
        Few::Created(period) => {
            let created = within("f.created_at", *period, parameters);
            format!("SELECT {columns} FROM definition f WHERE true{created}")
        }
    }
}

fn ids_in(status: Status, shards: u16) -> String {
    match status {
        Status::Pending => "SELECT d.id, d.claim IS NULL AS fits FROM due d ORDER BY d.shard, d.at, d.id".to_owned(),
        // No index tells what is claimed: it would make every claim dearer. Where too many had to be looked at, all of them are shown,
        // which are more than a few.
        Status::Executing => format!(
            "SELECT t.id, true AS fits
             FROM (
                SELECT d.id, d.claim, count(*) OVER () AS looked_at
                FROM (
                    SELECT d.id, d.claim
                    FROM generate_series(0, {shards} - 1) AS w (shard)
                    CROSS JOIN LATERAL (
                        SELECT d.id, d.claim FROM due d
                        WHERE d.shard = w.shard::smallint
                            AND d.at <= (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + {CLAIMED_AHEAD_MICROS}
                        ORDER BY d.at, d.id LIMIT {EXECUTING_LOOKED_AT_MAX} + 1
                    ) d
                    LIMIT {EXECUTING_LOOKED_AT_MAX} + 1
                ) d
             ) t
             WHERE t.claim IS NOT NULL OR t.looked_at > {EXECUTING_LOOKED_AT_MAX}"
        ),
        Status::Paused => "SELECT p.id, true AS fits FROM paused p".to_owned(),
        Status::Failed | Status::Canceled | Status::Expired => {
            format!("SELECT o.id, true AS fits FROM outcome o WHERE o.status = '{status}'")
        }
        ended => format!("SELECT o.id, o.status = '{ended}' AS fits FROM outcome o ORDER BY o.id"),
    }
}
