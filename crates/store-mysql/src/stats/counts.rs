use domain::{Namespace, TenantId};
use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow};
use store::{DueCounts, DueQuery};
use store_sql::{Call, ShardPortions, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    session::Session,
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
    async fn count(&self, shards: &[i16], session: &mut Session) -> Result<Vec<MySqlRow>, Failure> {
        let DueQuery { namespaces, from, to, step, .. } = &self.query;
        let [from, to, step] = [from, to, step].map(|minutes| minutes.saturating_mul(MICROS_PER_MINUTE));
        let statement = of_shards(if namespaces.is_empty() { DUE_COUNTS } else { DUE_COUNTS_OF }, shards);
        let statement = statement.replace("/* tenants */ 0", &list(&tenants(namespaces)));
        let query = sqlx::query(AssertSqlSafe(statement)).bind(from).bind(step).bind(from).bind(to);
        let query = if namespaces.is_empty() { query } else { query.bind(session.given(&names(namespaces)).await?) };
        query.fetch_all(session).await.or_not_done()
    }
}

impl Call<Connector> for Counts {
    type Answer = DueCounts;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<DueCounts, Failure> {
        let mut pending = vec![0; self.query.buckets()];
        let mut portions = ShardPortions::of(self.shards, self.query.budget);
        while let Some(shards) = portions.take() {
            for row in self.count(&shards, session).await? {
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

/// The bytes of namespaces, in hexadecimal: the form in which a statement takes them.
pub fn names(namespaces: &[Namespace]) -> Vec<String> {
    namespaces.iter().map(|namespace| hex(namespace.as_str())).collect()
}

/// The bytes of a text in hexadecimal.
pub fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The statement for these shards: numbers of ours, which need not be bound.
pub fn of_shards(statement: &str, shards: &[i16]) -> String {
    statement.replace("/* shards */ 0", &list(shards))
}

fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_put_into_a_statement() {
        assert!(of_shards(DUE_COUNTS, &[3, 4]).contains("shard IN (3, 4)"));
        assert!(DUE_COUNTS_OF.contains("/* tenants */ 0") && DUE_COUNTS_OF.contains("/* shards */ 0"));
    }

    #[test]
    fn texts_are_their_bytes() {
        assert_eq!((hex(""), hex("aé")), (String::new(), "61c3a9".to_owned()));
    }
}
