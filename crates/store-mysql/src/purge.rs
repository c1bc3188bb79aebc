//! Removing what finished long ago.

use domain::Timestamp;
use serde::Serialize;
use sqlx::types::Uuid;
use store_sql::{Call, sql};

use crate::{
    change_all::{DELETE_ATTEMPTS, DELETE_DEFINITIONS, DELETE_OUTCOME},
    connector::Connector,
    failure::{Failure, Step},
    rows::Hex,
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const OLD_OUTCOMES: &str = sql!("sql/old_outcomes.sql");

pub struct Purge {
    pub before: Timestamp,
    pub limit: i64,
}

#[derive(Serialize)]
struct Row {
    id: Hex,
}

impl Call<Connector> for Purge {
    type Answer = usize;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<usize, Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let old = sqlx::query_scalar::<_, Uuid>(OLD_OUTCOMES).bind(self.before.as_micros()).bind(self.limit);
        let old = old.fetch_all(transaction.session()).await.or_not_done()?;
        let rows: Vec<Row> = old.into_iter().map(|id| Row { id: Hex(id) }).collect();
        if !rows.is_empty() {
            let ids = transaction.session().given(&rows).await?;
            for statement in [DELETE_OUTCOME, DELETE_ATTEMPTS, DELETE_DEFINITIONS] {
                sqlx::query(statement).bind(&ids).execute(transaction.session()).await.or_not_done()?;
            }
        }
        transaction.commit().await?;
        Ok(rows.len())
    }
}
