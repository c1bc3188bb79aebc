use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use domain::{Namespace, TenantId, Timestamp};
use sqlx::{AssertSqlSafe, Row};
use store::{NAMESPACES_LISTED_MAX, NamespaceCount, NamespaceCounts};
use store_sql::{Call, ShardPortions, sql};

use super::{counts::of_shards, reports::parse};
use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows,
    session::Session,
};

const NEXT_NAMESPACE: &str = sql!("../sql/next_namespace.sql");
const PENDING_OF_TENANTS: &str = sql!("../sql/pending_of_tenants.sql");
const FAILED_OF_NAMESPACES: &str = sql!("../sql/failed_of_namespaces.sql");

/// How many failed timers are counted: each is looked up by its id.
const FAILED_COUNTED_MAX: i64 = 10_000;

/// What namespaces have.
pub struct Namespaces {
    pub only: Vec<Namespace>,
    pub now: Timestamp,
    pub budget: Duration,
    pub shards: u16,
}

/// What is pending of one tenant, as far as it was counted.
#[derive(Debug, Clone, Copy)]
struct Pending {
    timers: u64,
    first: i64,
}

impl Namespaces {
    async fn names(&self, session: &mut Session) -> Result<BTreeSet<Namespace>, Failure> {
        if !self.only.is_empty() {
            return Ok(self.only.iter().cloned().collect());
        }
        let mut names = BTreeSet::from([Namespace::default()]);
        let mut last: Vec<u8> = Vec::new();
        // Each is found by one step along the index.
        while names.len() <= NAMESPACES_LISTED_MAX {
            let next: Option<Vec<u8>> =
                sqlx::query_scalar(NEXT_NAMESPACE).bind(&last).fetch_one(&mut *session).await.or_not_done()?;
            let Some(next) = next else { break };
            names.insert(parse(&String::from_utf8_lossy(&next))?);
            last = next;
        }
        Ok(names)
    }

    async fn pending(&self, portions: &mut ShardPortions, session: &mut Session) -> Result<HashMap<i64, Pending>, Failure> {
        let mut pending: HashMap<i64, Pending> = HashMap::new();
        while let Some(shards) = portions.take() {
            for row in
                sqlx::query(AssertSqlSafe(of_shards(PENDING_OF_TENANTS, &shards))).fetch_all(&mut *session).await.or_not_done()?
            {
                let counted = Pending {
                    timers: row.try_get::<i64, _>("pending").or_not_done()?.unsigned_abs(),
                    first: row.try_get("first_at").or_not_done()?,
                };
                let add = |so_far: &mut Pending| {
                    so_far.timers += counted.timers;
                    so_far.first = so_far.first.min(counted.first);
                };
                pending.entry(row.try_get("tenant").or_not_done()?).and_modify(add).or_insert(counted);
            }
        }
        Ok(pending)
    }

    async fn failed(session: &mut Session) -> Result<HashMap<String, u64>, Failure> {
        let rows = sqlx::query(FAILED_OF_NAMESPACES).bind(FAILED_COUNTED_MAX).fetch_all(session).await.or_not_done()?;
        let count = |row: &sqlx::mysql::MySqlRow| {
            Ok((rows::text(row, "namespace").or_not_done()?, row.try_get::<i64, _>("failed").or_not_done()?.unsigned_abs()))
        };
        rows.iter().map(count).collect()
    }
}

impl Call<Connector> for Namespaces {
    type Answer = NamespaceCounts;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<NamespaceCounts, Failure> {
        let mut portions = ShardPortions::of(self.shards, self.budget);
        let names = self.names(session).await?;
        let is_complete = names.len() <= NAMESPACES_LISTED_MAX;
        let failed = Self::failed(session).await?;
        let pending = self.pending(&mut portions, session).await?;
        let count = |namespace: Namespace| {
            let pending = pending.get(&i64::from(TenantId::of(&namespace).number()));
            let first = pending.map(|pending| Timestamp::from_micros(pending.first));
            NamespaceCount {
                pending: pending.map_or(0, |pending| portions.of_all(pending.timers)),
                failed: failed.get(namespace.as_str()).copied().unwrap_or_default(),
                oldest_overdue: first.filter(|first| *first <= self.now),
                namespace,
            }
        };
        Ok(NamespaceCounts {
            namespaces: names.into_iter().take(NAMESPACES_LISTED_MAX).map(count).collect(),
            pending_is_estimate: portions.is_partly(),
            failed_is_estimate: failed.values().sum::<u64>() >= FAILED_COUNTED_MAX.unsigned_abs(),
            is_complete,
        })
    }
}
