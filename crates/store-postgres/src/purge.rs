//! Removing what finished long ago.

use domain::Timestamp;
use sqlx::PgConnection;
use store_sql::{Call, sql};

use crate::{
    failure::{Failure, Step},
    sessions::Sessions,
};

pub(crate) const PURGE: &str = sql!("sql/purge.sql");

pub struct Purge {
    pub before: Timestamp,
    pub limit: i64,
}

impl Call<Sessions> for Purge {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<usize, Failure> {
        let purged: i64 =
            sqlx::query_scalar(PURGE).bind(self.before.as_micros()).bind(self.limit).fetch_one(session).await.or_unknown()?;
        Ok(usize::try_from(purged).unwrap_or(0))
    }
}
