use domain::{Namespace, Timestamp};
use serde::Serialize;
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{NodeDigest, NodeId, NodeReceiver, NodeStats, RECEIVERS_READ_MAX, Unreadable, read_report, write_report};
use store_sql::{Call, sql};

use super::counts::{hex, names};
use crate::{
    connector::Connector,
    failure::{Failure, Step},
    ownership::uuid,
    rows::{self, Hex},
    session::Session,
    transaction::{Holds, Transaction},
};

const WRITE_DIGESTS: &str = sql!("../sql/write_digests.sql");
const WRITE_RECEIVERS: &str = sql!("../sql/write_receivers.sql");
const FORGET_DIGESTS: &str = sql!("../sql/forget_digests.sql");
const FORGET_RECEIVERS: &str = sql!("../sql/forget_receivers.sql");
const DIGESTS: &str = sql!("../sql/digests.sql");
const RECEIVERS: &str = sql!("../sql/receivers.sql");
const RECEIVERS_OF: &str = sql!("../sql/receivers_of.sql");

/// Rows of digests that concern all namespaces together.
const ALL_NAMESPACES: &str = "";

/// What a node writes down.
#[derive(Debug, Default)]
pub struct Record {
    digests: Vec<DigestRow>,
    receivers: Vec<ReceiverRow>,
    forget_before: i64,
    forget_before_minute: i64,
}

#[derive(Debug, Serialize)]
struct DigestRow {
    namespace: String,
    minute: i64,
    node: Hex,
    report: String,
}

#[derive(Debug, Serialize)]
struct ReceiverRow {
    node: Hex,
    namespace: String,
    destination: String,
    written_at: i64,
    report: String,
}

impl Record {
    pub fn new(stats: &NodeStats) -> Self {
        let digest = |NodeDigest { node, minute, namespace, digest }: &NodeDigest| DigestRow {
            namespace: hex(namespace.as_ref().map_or(ALL_NAMESPACES, Namespace::as_str)),
            minute: *minute,
            node: Hex(uuid(*node)),
            report: write_report(digest),
        };
        let receiver = |NodeReceiver { node, namespace, destination, written_at, report }: &NodeReceiver| ReceiverRow {
            node: Hex(uuid(*node)),
            namespace: hex(namespace.as_str()),
            destination: hex(destination),
            written_at: written_at.as_micros(),
            report: write_report(report),
        };
        let mut record = Self {
            digests: stats.digests.iter().map(digest).collect(),
            receivers: stats.receivers.iter().map(receiver).collect(),
            forget_before: stats.forget_before.as_micros(),
            forget_before_minute: stats.forget_before.minute(),
        };
        // In the order of their keys, so that no two nodes wait for each other in a circle.
        record.digests.sort_unstable_by(|a, b| (&a.namespace, a.minute).cmp(&(&b.namespace, b.minute)));
        record.receivers.sort_unstable_by(|a, b| (&a.namespace, &a.destination).cmp(&(&b.namespace, &b.destination)));
        record
    }
}

impl Call<Connector> for Record {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        if !self.digests.is_empty() {
            sqlx::query(WRITE_DIGESTS)
                .bind(transaction.session().given(&self.digests).await?)
                .execute(transaction.session())
                .await
                .or_not_done()?;
        }
        if !self.receivers.is_empty() {
            sqlx::query(WRITE_RECEIVERS)
                .bind(transaction.session().given(&self.receivers).await?)
                .execute(transaction.session())
                .await
                .or_not_done()?;
        }
        sqlx::query(FORGET_DIGESTS).bind(self.forget_before_minute).execute(transaction.session()).await.or_not_done()?;
        sqlx::query(FORGET_RECEIVERS).bind(self.forget_before).execute(transaction.session()).await.or_not_done()?;
        transaction.commit().await
    }
}

pub struct Digests {
    namespaces: Vec<String>,
    from: i64,
    to: i64,
}

impl Digests {
    pub fn new(namespaces: &[Namespace], from: i64, to: i64) -> Self {
        let namespaces = if namespaces.is_empty() { vec![hex(ALL_NAMESPACES)] } else { names(namespaces) };
        Self { namespaces, from, to }
    }
}

impl Call<Connector> for Digests {
    type Answer = Vec<NodeDigest>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<NodeDigest>, Failure> {
        let statement = sqlx::query(DIGESTS).bind(session.given(&self.namespaces).await?).bind(self.from).bind(self.to);
        statement.fetch_all(session).await.or_not_done()?.iter().map(digest).collect()
    }
}

fn digest(row: &MySqlRow) -> Result<NodeDigest, Failure> {
    let namespace = rows::text(row, "namespace").or_not_done()?;
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

    async fn run(&self, session: &mut Session) -> Result<Vec<NodeReceiver>, Failure> {
        let limit = i64::try_from(RECEIVERS_READ_MAX).unwrap_or(i64::MAX);
        let statement = match &self.namespaces {
            None => sqlx::query(RECEIVERS).bind(limit),
            Some(namespaces) => sqlx::query(RECEIVERS_OF).bind(session.given(namespaces).await?).bind(limit),
        };
        statement.fetch_all(session).await.or_not_done()?.iter().map(receiver).collect()
    }
}

fn receiver(row: &MySqlRow) -> Result<NodeReceiver, Failure> {
    let namespace = rows::text(row, "namespace").or_not_done()?;
    Ok(NodeReceiver {
        node: node(row)?,
        namespace: parse(&namespace)?,
        destination: rows::text(row, "destination").or_not_done()?,
        written_at: Timestamp::from_micros(row.try_get("written_at").or_not_done()?),
        report: read_report(row.try_get("report").or_not_done()?)?,
    })
}

fn node(row: &MySqlRow) -> Result<NodeId, Failure> {
    Ok(NodeId(row.try_get::<Uuid, _>("node").or_not_done()?.as_u128()))
}

pub fn parse(namespace: &str) -> Result<Namespace, Unreadable> {
    Namespace::parse(namespace).map_err(|invalid| Unreadable(invalid.to_string()))
}
