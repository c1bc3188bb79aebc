//! Removing what finished long ago, and giving back the space that it took.

use domain::Timestamp;
use sqlx::PgConnection;
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step, cause},
};

pub(crate) const PURGE: &str = sql!("sql/purge.sql");
pub(crate) const IS_SPARSE: &str = sql!("sql/is_sparse.sql");

/// Gives the end of the file back to the system. The vacuums of the server itself never do that to this table: for a moment no timer
/// could be claimed. Skips the table where this role does not own it.
const SHRINK: &str = "VACUUM (TRUNCATE TRUE, SKIP_LOCKED TRUE) due";

pub struct Purge {
    pub before: Timestamp,
    pub limit: i64,
}

impl Call<Connector> for Purge {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<usize, Failure> {
        let purged: i64 = sqlx::query_scalar(PURGE)
            .bind(self.before.as_micros())
            .bind(self.limit)
            .fetch_one(&mut *session)
            .await
            .or_unknown()?;
        // The last page of a purge is a moment at which little is going on, and comes once a minute at most.
        if purged < self.limit
            && let Err(error) = shrink(session).await
        {
            tracing::debug!(error = %cause(error), "the table of what is due could not be made smaller");
        }
        Ok(usize::try_from(purged).unwrap_or(0))
    }
}

async fn shrink(session: &mut PgConnection) -> Result<(), sqlx::Error> {
    if sqlx::query_scalar(IS_SPARSE).fetch_one(&mut *session).await? {
        sqlx::raw_sql(SHRINK).execute(session).await?;
    }
    Ok(())
}
