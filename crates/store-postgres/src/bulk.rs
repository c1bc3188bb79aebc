//! Canceling many timers at once.

use std::collections::HashSet;

use domain::{TimerId, Timestamp};
use sqlx::{PgConnection, types::Uuid};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::shard_column,
};

/// How often timers may move while we try to get hold of them.
const CHASES_MAX: usize = 8;

pub(crate) const CANCEL_ALL: &str = sql!("sql/cancel_all.sql");
pub(crate) const STILL_PENDING: &str = sql!("sql/still_pending.sql");

/// Cancels timers, and answers with those that were pending.
pub struct CancelAll {
    wanted: Vec<(Uuid, i16)>,
    now: Timestamp,
}

impl CancelAll {
    pub fn new(ids: &[TimerId], now: Timestamp, shards: u16) -> Self {
        Self { wanted: ids.iter().map(|id| (id.as_uuid(), shard_column(*id, shards))).collect(), now }
    }

    async fn cancel(&self, wanted: &[(Uuid, i16)], session: &mut PgConnection) -> Result<Vec<Uuid>, Failure> {
        let (ids, shards): (Vec<_>, Vec<_>) = wanted.iter().copied().unzip();
        let query = sqlx::query_scalar(CANCEL_ALL).bind(ids).bind(shards).bind(self.now.as_micros());
        query.fetch_all(session).await.or_unknown()
    }
}

impl Call<Connector> for CancelAll {
    type Answer = HashSet<Uuid>;
    const WRITES: bool = true;

    /// One statement, and one look at those that it did not cancel: only what moved in the meantime is tried again.
    async fn run(&self, session: &mut PgConnection) -> Result<HashSet<Uuid>, Failure> {
        let mut canceled: HashSet<Uuid> = HashSet::with_capacity(self.wanted.len());
        let mut rest = self.wanted.clone();
        for _ in 0..CHASES_MAX {
            let is_partly_done = !canceled.is_empty();
            canceled.extend(self.cancel(&rest, session).await.map_err(|failure| failure.after_a_commit_if(is_partly_done))?);
            rest.retain(|(id, _)| !canceled.contains(id));
            if !rest.is_empty() {
                let pending = still_pending(&rest, session).await;
                let pending = pending.map_err(|failure| failure.after_a_commit_if(!canceled.is_empty()))?;
                rest.retain(|(id, _)| pending.contains(id));
            }
            if rest.is_empty() {
                return Ok(canceled);
            }
        }
        Err(Failure::contention("other requests keep moving these timers").after_a_commit_if(!canceled.is_empty()))
    }
}

async fn still_pending(wanted: &[(Uuid, i16)], session: &mut PgConnection) -> Result<HashSet<Uuid>, Failure> {
    let (ids, shards): (Vec<_>, Vec<_>) = wanted.iter().copied().unzip();
    let pending = sqlx::query_scalar(STILL_PENDING).bind(ids).bind(shards).fetch_all(session).await.or_not_done()?;
    Ok(pending.into_iter().collect())
}

/// Says for each of `ids` whether it is among the canceled ones; of several that are the same, only for the first.
pub fn whether_canceled(ids: &[TimerId], mut canceled: HashSet<Uuid>) -> Vec<bool> {
    ids.iter().map(|id| canceled.remove(&id.as_uuid())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_repeated_ids_the_first_is_the_one_that_was_canceled() {
        let [one, two, three] = [1, 2, 3].map(|n| TimerId::from_uuid(Uuid::from_u128(n)));
        let canceled = [one, two].map(TimerId::as_uuid).into_iter().collect();
        assert_eq!(whether_canceled(&[one, three, one, two, two], canceled), [true, false, false, true, false]);
    }
}
