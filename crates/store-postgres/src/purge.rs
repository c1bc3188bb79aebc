//! Removing what finished long ago.

use domain::Timestamp;
use sqlx::PgConnection;

use crate::{
    bulkhead::Call,
    failure::{Failure, Step},
};

/// Locks each outcome first, as a revival does: one that is being revived is passed over, one that is being purged is gone when
/// the revival gets to it.
pub(crate) const PURGE: &str = "
    WITH old AS MATERIALIZED (
        SELECT id FROM outcome WHERE finished_at < $1::bigint ORDER BY finished_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outcome o USING old WHERE o.id = ANY (ARRAY[old.id]) RETURNING o.id
    ), dropped AS (
        DELETE FROM definition f USING gone WHERE f.id = ANY (ARRAY[gone.id])
    ), forgotten AS (
        DELETE FROM attempt a USING gone WHERE a.id = ANY (ARRAY[gone.id])
    )
    SELECT count(*) FROM gone";

pub struct Purge {
    pub before: Timestamp,
    pub limit: i64,
}

impl Call for Purge {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<usize, Failure> {
        let purged: i64 =
            sqlx::query_scalar(PURGE).bind(self.before.as_micros()).bind(self.limit).fetch_one(session).await.or_unknown()?;
        Ok(usize::try_from(purged).unwrap_or(0))
    }
}
