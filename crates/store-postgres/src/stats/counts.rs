use domain::{Namespace, TenantId};
use sqlx::{PgConnection, Row, postgres::PgRow};
use store::{DueCounts, DueQuery};
use store_sql::{Call, ShardPortions, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
};

const DUE_COUNTS: &str = sql!("../sql/due_counts.sql");
const DUE_COUNTS_OF: &str = sql!("../sql/due_counts_of.sql");

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// How many timers are pending in each bucket.
pub struct Counts {
    pub query: DueQuery,
    pub shards: u16,
}

impl Counts {
    async fn count(&self, shards: Vec<i16>, session: &mut PgConnection) -> Result<Vec<PgRow>, Failure> {
        let DueQuery { namespaces, from, to, step, now, .. } = &self.query;
        let [from, to, step] = [from, to, step].map(|minutes| minutes.saturating_mul(MICROS_PER_MINUTE));
        let sql = if namespaces.is_empty() { DUE_COUNTS } else { DUE_COUNTS_OF };
        let statement = sqlx::query(sql).bind(shards).bind(from).bind(to).bind(step);
        let statement = if namespaces.is_empty() {
            // What is due at this very time may be claimed.
            statement.bind(now.as_micros().saturating_add(1))
        } else {
            statement.bind(tenants(namespaces)).bind(names(namespaces))
        };
        statement.fetch_all(session).await.or_not_done()
    }
}

impl Call<Connector> for Counts {
    type Answer = DueCounts;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<DueCounts, Failure> {
        let mut pending = vec![0; self.query.buckets()];
        let mut portions = ShardPortions::of(self.shards, self.query.budget);
        while let Some(shards) = portions.take() {
            for row in self.count(shards, session).await? {
                let (bucket, counted): (i64, i64) = (row.try_get("bucket").or_not_done()?, row.try_get("pending").or_not_done()?);
                if let Some(count) = usize::try_from(bucket).ok().and_then(|bucket| pending.get_mut(bucket)) {
                    *count += counted.unsigned_abs();
                }
            }
        }
        let pending = pending.into_iter().map(|counted| portions.of_all(counted)).collect();
        Ok(DueCounts { pending, is_estimate: portions.is_partly() })
    }
}

/// The numbers of namespaces in destinations.
pub fn tenants(namespaces: &[Namespace]) -> Vec<i64> {
    namespaces.iter().map(|namespace| i64::from(TenantId::of(namespace).number())).collect()
}

pub fn names(namespaces: &[Namespace]) -> Vec<String> {
    namespaces.iter().map(|namespace| namespace.as_str().to_owned()).collect()
}
