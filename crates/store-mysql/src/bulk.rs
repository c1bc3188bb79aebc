//! Canceling many timers at once.

use std::collections::HashSet;

use domain::{TimerId, Timestamp};
use store::{BulkAction, BulkItem};
use store_sql::Call;

use crate::{
    change_all::{ChangeAll, hold},
    connector::Connector,
    failure::Failure,
    session::Session,
    transaction::Transaction,
};

/// Cancels timers, and answers with those that were pending or paused.
pub struct CancelAll {
    pub ids: Vec<TimerId>,
    pub now: Timestamp,
    pub shards: u16,
}

impl Call<Connector> for CancelAll {
    type Answer = HashSet<TimerId>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<HashSet<TimerId>, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let current = hold(transaction.session(), &BulkAction::Cancel, &self.ids, self.now, self.shards).await?;
        // Whatever their revisions are: no other session changes them any more.
        let items: Vec<BulkItem> = current.iter().map(|(id, current)| BulkItem::of(*id, &current.standing)).collect();
        let change = ChangeAll { action: BulkAction::Cancel, items, progress: None, now: self.now, shards: self.shards };
        let changes = change.change(&mut transaction, &current).await?;
        transaction.commit().await?;
        let canceled = change.items.iter().zip(changes).filter(|(_, change)| change.is_change());
        Ok(canceled.map(|(item, _)| item.id).collect())
    }
}

/// Says for each of `ids` whether it is among the canceled ones; of several that are the same, only for the first.
pub fn whether_canceled(ids: &[TimerId], mut canceled: HashSet<TimerId>) -> Vec<bool> {
    ids.iter().map(|id| canceled.remove(id)).collect()
}

#[cfg(test)]
mod tests {
    use sqlx::types::Uuid;

    use super::*;

    #[test]
    fn of_repeated_ids_the_first_is_the_one_that_was_canceled() {
        let [one, two, three] = [1, 2, 3].map(|n| TimerId::from_uuid(Uuid::from_u128(n)));
        let canceled = [one, two].into_iter().collect();
        assert_eq!(whether_canceled(&[one, three, one, two, two], canceled), [true, false, false, true, false]);
    }
}
