use domain::{Namespace, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{NodeDigest, NodeId, NodeReceiver, NodeStats, RECEIVERS_READ_MAX, Unreadable, read_report, write_report};
use store_sql::{Call, sql};

use super::counts::names;
use crate::{
    connector::Connector,
    failure::{Failure, Step},
    ownership::uuid,
    rows::text_column,
};

const RECORD_STATS: &str = sql!("../sql/record_stats.sql");
const DIGESTS: &str = sql!("../sql/digests.sql");
const RECEIVERS: &str = sql!("../sql/receivers.sql");

/// Rows of digests that concern all namespaces together.
const ALL_NAMESPACES: &str = "";

/// What a node writes down, one array for each column.
#[derive(Debug, Default)]
pub struct Record {
    digests: DigestColumns,
    receivers: ReceiverColumns,
    forget_before: i64,
    forget_before_minute: i64,
}

#[derive(Debug, Default)]
struct DigestColumns {
    namespaces: Vec<String>,
    minutes: Vec<i64>,
    nodes: Vec<Uuid>,
    reports: Vec<String>,
}

#[derive(Debug, Default)]
struct ReceiverColumns {
    nodes: Vec<Uuid>,
    namespaces: Vec<String>,
    destinations: Vec<String>,
    written_ats: Vec<i64>,
    reports: Vec<String>,
}

impl Record {
    pub fn new(stats: &NodeStats) -> Self {
        let mut record = Self {
            forget_before: stats.forget_before.as_micros(),
            forget_before_minute: stats.forget_before.minute(),
            ..Self::default()
        };
        for NodeDigest { node, minute, namespace, digest } in &stats.digests {
            let namespace = namespace.as_ref().map_or(ALL_NAMESPACES, Namespace::as_str);
            record.digests.namespaces.push(namespace.to_owned());
            record.digests.minutes.push(*minute);
            record.digests.nodes.push(uuid(*node));
            record.digests.reports.push(write_report(digest));
        }
        for NodeReceiver { node, namespace, destination, written_at, report } in &stats.receivers {
            record.receivers.nodes.push(uuid(*node));
            record.receivers.namespaces.push(namespace.as_str().to_owned());
            record.receivers.destinations.push(text_column(destination));
            record.receivers.written_ats.push(written_at.as_micros());
            record.receivers.reports.push(write_report(report));
        }
        record
    }
}

impl Call<Connector> for Record {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        let Self { digests, receivers, forget_before, forget_before_minute } = self;
        let statement = sqlx::query(RECORD_STATS)
            .bind(&digests.namespaces)
            .bind(&digests.minutes)
            .bind(&digests.nodes)
            .bind(&digests.reports)
            .bind(&receivers.nodes)
            .bind(&receivers.namespaces)
            .bind(&receivers.destinations)
            .bind(&receivers.written_ats)
            .bind(&receivers.reports)
            .bind(forget_before_minute)
            .bind(forget_before);
        statement.execute(session).await.or_unknown().map(drop)
    }
}

pub struct Digests {
    namespaces: Vec<String>,
    from: i64,
    to: i64,
}

impl Digests {
    pub fn new(namespaces: &[Namespace], from: i64, to: i64) -> Self {
        let namespaces = if namespaces.is_empty() { vec![ALL_NAMESPACES.to_owned()] } else { names(namespaces) };
        Self { namespaces, from, to }
    }
}

impl Call<Connector> for Digests {
    type Answer = Vec<NodeDigest>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<NodeDigest>, Failure> {
        let statement = sqlx::query(DIGESTS).bind(&self.namespaces).bind(self.from).bind(self.to);
        statement.fetch_all(session).await.or_not_done()?.iter().map(digest).collect()
    }
}

fn digest(row: &PgRow) -> Result<NodeDigest, Failure> {
    let namespace: String = row.try_get("namespace").or_not_done()?;
    Ok(NodeDigest {
        node: node(row)?,
        minute: row.try_get("minute").or_not_done()?,
        namespace: (namespace != ALL_NAMESPACES).then(|| parse(&namespace)).transpose()?,
        digest: read_report(row.try_get("report").or_not_done()?)?,
    })
}

pub struct Receivers {
    namespaces: Option<Vec<String>>,
}

impl Receivers {
    pub fn new(namespaces: &[Namespace]) -> Self {
        Self { namespaces: (!namespaces.is_empty()).then(|| names(namespaces)) }
    }
}

impl Call<Connector> for Receivers {
    type Answer = Vec<NodeReceiver>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Vec<NodeReceiver>, Failure> {
        let limit = i64::try_from(RECEIVERS_READ_MAX).unwrap_or(i64::MAX);
        let statement = sqlx::query(RECEIVERS).bind(&self.namespaces).bind(limit);
        statement.fetch_all(session).await.or_not_done()?.iter().map(receiver).collect()
    }
}

fn receiver(row: &PgRow) -> Result<NodeReceiver, Failure> {
    let namespace: String = row.try_get("namespace").or_not_done()?;
    Ok(NodeReceiver {
        node: node(row)?,
        namespace: parse(&namespace)?,
        destination: row.try_get("destination").or_not_done()?,
        written_at: Timestamp::from_micros(row.try_get("written_at").or_not_done()?),
        report: read_report(row.try_get("report").or_not_done()?)?,
    })
}

fn node(row: &PgRow) -> Result<NodeId, Failure> {
    Ok(NodeId(row.try_get::<Uuid, _>("node").or_not_done()?.as_u128()))
}

pub fn parse(namespace: &str) -> Result<Namespace, Unreadable> {
    Namespace::parse(namespace).map_err(|invalid| Unreadable(invalid.to_string()))
}
