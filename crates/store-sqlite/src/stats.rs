//! Statistics for operators: counted along the tables that are clustered by time, taken from the tally, or as nodes wrote them down.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Clock, Namespace, Timestamp};
use rusqlite::{Connection, Row, params};
use store::{
    DueCounts, DueQuery, NAMESPACES_LISTED_MAX, NamespaceCount, NamespaceCounts, NodeDigest, NodeId, NodeReceiver, NodeStats,
    RECEIVERS_READ_MAX, StatsStore, StoreResult, Unreadable, read_report, write_report,
};
use store_sql::{column, sql};

use crate::{SqliteStore, failure::Failure, tally::Tally, writer::Write};

pub const DUE_COUNTS: &str = sql!("sql/due_counts.sql");
pub const DUE_COUNTS_OF: &str = sql!("sql/due_counts_of.sql");
const WRITE_DIGEST: &str = sql!("sql/write_digest.sql");
const WRITE_RECEIVER: &str = sql!("sql/write_receiver.sql");
pub const FORGET_DIGESTS: &str = sql!("sql/forget_digests.sql");
pub const FORGET_RECEIVERS: &str = sql!("sql/forget_receivers.sql");
const DIGESTS: &str = sql!("sql/digests.sql");
const RECEIVERS: &str = sql!("sql/receivers.sql");
const NAMESPACES: &str = sql!("sql/namespaces.sql");
pub const OVERDUE_OF_NAMESPACES: &str = sql!("sql/overdue_of_namespaces.sql");

/// Rows of digests that concern all namespaces together.
const ALL_NAMESPACES: &str = "";
/// The number of rows between two checks of the budget.
const ROWS_BETWEEN_LOOKS: usize = 1_024;

#[async_trait]
impl StatsStore for SqliteStore {
    async fn due_counts(&self, query: &DueQuery) -> StoreResult<DueCounts> {
        let (query, budget) = (query.clone(), Budget::start(&self.clock, query.budget));
        self.scan(move |connection| due_counts(connection, &query, &budget)).await
    }

    async fn record_stats(&self, stats: &NodeStats) -> StoreResult<()> {
        self.writer.write(Record(stats.clone())).await?;
        Ok(())
    }

    async fn digests(&self, namespaces: &[Namespace], from: i64, to: i64) -> StoreResult<Vec<NodeDigest>> {
        let namespaces = json_array(namespaces).unwrap_or_else(|| format!("[\"{ALL_NAMESPACES}\"]"));
        self.scan(move |connection| digests(connection, &namespaces, from, to)).await
    }

    async fn receivers(&self, namespaces: &[Namespace]) -> StoreResult<Vec<NodeReceiver>> {
        let namespaces = json_array(namespaces);
        self.scan(move |connection| receivers(connection, namespaces.as_deref())).await
    }

    async fn namespace_counts(&self, only: &[Namespace], now: Timestamp, budget: Duration) -> StoreResult<NamespaceCounts> {
        let (only, budget) = (json_array(only), Budget::start(&self.clock, budget));
        self.scan(move |connection| namespace_counts(connection, only.as_deref(), now, &budget)).await
    }
}

/// How long a scan may still take.
struct Budget {
    clock: Arc<dyn Clock>,
    until: Duration,
}

impl Budget {
    fn start(clock: &Arc<dyn Clock>, budget: Duration) -> Self {
        Self { clock: Arc::clone(clock), until: clock.monotonic().saturating_add(budget) }
    }

    fn has_run_out(&self) -> bool {
        self.clock.monotonic() >= self.until
    }
}

/// `None` where none is named.
fn json_array(namespaces: &[Namespace]) -> Option<String> {
    let names = || serde_json::Value::from_iter(namespaces.iter().map(Namespace::as_str));
    (!namespaces.is_empty()).then(|| names().to_string())
}

fn due_counts(connection: &Connection, query: &DueQuery, budget: &Budget) -> Result<DueCounts, Failure> {
    // Both have the same columns.
    let sql = if query.namespaces.is_empty() { DUE_COUNTS } else { DUE_COUNTS_OF };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = match json_array(&query.namespaces) {
        None => statement.query(params![query.from, query.to])?,
        Some(namespaces) => statement.query(params![query.from, query.to, namespaces])?,
    };
    let mut pending = vec![0; query.buckets()];
    while let Some(row) = rows.next()? {
        let Some(bucket) = query.bucket(row.get(column!(DUE_COUNTS, "minute"))?) else { continue };
        if budget.has_run_out() {
            // The bucket of this minute is not counted to its end.
            pending.truncate(bucket);
            break;
        }
        pending[bucket] += row.get::<_, i64>(column!(DUE_COUNTS, "pending"))?.unsigned_abs();
    }
    Ok(DueCounts { pending, is_estimate: false })
}

struct Record(NodeStats);

impl Write for Record {
    type Answer = ();
    const NAME: &'static str = "record_stats";

    fn rows(&self) -> usize {
        self.0.digests.len() + self.0.receivers.len()
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        let NodeStats { digests, receivers, forget_before } = &self.0;
        let mut statement = connection.prepare_cached(WRITE_DIGEST)?;
        for NodeDigest { node, minute, namespace, digest } in digests {
            let namespace = namespace.as_ref().map_or(ALL_NAMESPACES, Namespace::as_str);
            statement.execute(params![namespace, minute, node.0.to_be_bytes(), write_report(digest)])?;
        }
        let mut statement = connection.prepare_cached(WRITE_RECEIVER)?;
        for NodeReceiver { node, namespace, destination, written_at, report } in receivers {
            statement.execute(params![
                node.0.to_be_bytes(),
                namespace.as_str(),
                destination,
                written_at.as_micros(),
                write_report(report)
            ])?;
        }
        connection.prepare_cached(FORGET_DIGESTS)?.execute([forget_before.minute()])?;
        connection.prepare_cached(FORGET_RECEIVERS)?.execute([forget_before.as_micros()])?;
        Ok(())
    }
}

fn digests(connection: &Connection, namespaces: &str, from: i64, to: i64) -> Result<Vec<NodeDigest>, Failure> {
    let mut statement = connection.prepare_cached(DIGESTS)?;
    let mut rows = statement.query(params![namespaces, from, to])?;
    let mut digests = Vec::new();
    while let Some(row) = rows.next()? {
        let namespace: String = row.get(column!(DIGESTS, "namespace"))?;
        digests.push(NodeDigest {
            node: node(row, column!(DIGESTS, "node"))?,
            minute: row.get(column!(DIGESTS, "minute"))?,
            namespace: (namespace != ALL_NAMESPACES).then(|| parse(&namespace)).transpose()?,
            digest: read_report(&row.get::<_, String>(column!(DIGESTS, "report"))?)?,
        });
    }
    Ok(digests)
}

fn receivers(connection: &Connection, namespaces: Option<&str>) -> Result<Vec<NodeReceiver>, Failure> {
    let limit = i64::try_from(RECEIVERS_READ_MAX).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(RECEIVERS)?;
    let mut rows = statement.query(params![namespaces, limit])?;
    let mut receivers = Vec::new();
    while let Some(row) = rows.next()? {
        receivers.push(NodeReceiver {
            node: node(row, column!(RECEIVERS, "node"))?,
            namespace: parse(&row.get::<_, String>(column!(RECEIVERS, "namespace"))?)?,
            destination: row.get(column!(RECEIVERS, "destination"))?,
            written_at: Timestamp::from_micros(row.get(column!(RECEIVERS, "written_at"))?),
            report: read_report(&row.get::<_, String>(column!(RECEIVERS, "report"))?)?,
        });
    }
    Ok(receivers)
}

fn node(row: &Row<'_>, column: usize) -> rusqlite::Result<NodeId> {
    Ok(NodeId(u128::from_be_bytes(row.get(column)?)))
}

fn parse(namespace: &str) -> Result<Namespace, Unreadable> {
    Namespace::parse(namespace).map_err(|invalid| Unreadable(invalid.to_string()))
}

fn namespace_counts(
    connection: &Connection,
    only: Option<&str>,
    now: Timestamp,
    budget: &Budget,
) -> Result<NamespaceCounts, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let overdue = oldest_overdue(&snapshot, now, budget)?;
    let one_more = i64::try_from(NAMESPACES_LISTED_MAX + 1).unwrap_or(i64::MAX);
    let mut statement = snapshot.prepare_cached(NAMESPACES)?;
    let mut rows = statement.query(params![only, one_more])?;
    let mut counts = NamespaceCounts { is_complete: true, ..NamespaceCounts::default() };
    while let Some(row) = rows.next()? {
        if counts.namespaces.len() == NAMESPACES_LISTED_MAX {
            counts.is_complete = false;
            break;
        }
        let name: String = row.get(column!(NAMESPACES, "namespace"))?;
        counts.namespaces.push(NamespaceCount {
            oldest_overdue: overdue.get(&name).copied(),
            namespace: parse(&name)?,
            pending: row.get::<_, i64>(column!(NAMESPACES, "pending"))?.unsigned_abs(),
            failed: row.get::<_, i64>(column!(NAMESPACES, "failed"))?.unsigned_abs(),
        });
    }
    Ok(counts)
}

/// Finds the oldest overdue timer of each namespace that has one, as far as the budget lets it be looked for. The oldest come first, so
/// what is missed then is younger than what is found.
fn oldest_overdue(connection: &Connection, now: Timestamp, budget: &Budget) -> Result<BTreeMap<String, Timestamp>, Failure> {
    let mut oldest: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut statement = connection.prepare_cached(OVERDUE_OF_NAMESPACES)?;
    let mut rows = statement.query(params![now.minute(), now.as_micros()])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if seen % ROWS_BETWEEN_LOOKS == 0 && budget.has_run_out() {
            break;
        }
        let at = Timestamp::from_micros(row.get(column!(OVERDUE_OF_NAMESPACES, "at"))?);
        let namespace: Option<String> = row.get(column!(OVERDUE_OF_NAMESPACES, "namespace"))?;
        let namespace = namespace.unwrap_or_else(|| Namespace::DEFAULT.to_owned());
        oldest.entry(namespace).and_modify(|oldest| *oldest = at.min(*oldest)).or_insert(at);
    }
    Ok(oldest)
}
