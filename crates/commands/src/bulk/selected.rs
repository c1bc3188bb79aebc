use domain::{Timer, TimerId};
use futures_util::{StreamExt, TryStreamExt, stream};
use store::Summary;

use super::BulkAnswer;
use crate::{BulkWork, CommandError, Commands};

/// How many timers are read at the same time.
pub(super) const READ_AT_ONCE: usize = 8;

impl Commands {
    /// Changes the timers that are named, as a bulk request changes those that match; their order is the one in which a time is spread over
    /// them. Those that are gone, and those that the caller does not see, are skipped.
    pub async fn bulk_selected(&self, work: &BulkWork, ids: &[TimerId]) -> Result<BulkAnswer, CommandError> {
        self.check_may_write()?;
        let now = self.clock.now();
        let work = work.checked(&self.rules, now)?;
        let found: Vec<_> = self.read_all(ids).try_collect().await?;
        let found: Vec<_> = found.into_iter().flatten().map(summary).collect();
        let answer = self.change_now(&work, &found, now).await?;
        Ok(match answer {
            BulkAnswer::Done { changed, .. } => BulkAnswer::Done { changed, skipped: ids.len() as u64 - changed },
            started @ BulkAnswer::Started(_) => started,
        })
    }

    /// The timers with these ids, in their order; `None` for one that is gone or that the caller does not see.
    pub(super) fn read_all<'a>(
        &'a self,
        ids: &'a [TimerId],
    ) -> impl stream::Stream<Item = Result<Option<Timer>, CommandError>> + 'a {
        let read = async move |id: &TimerId| match self.get(*id).await {
            Ok(timer) => Ok(Some(timer)),
            Err(CommandError::NotFound) => Ok(None),
            Err(error) => Err(error),
        };
        stream::iter(ids).map(read).buffered(READ_AT_ONCE)
    }
}

fn summary(timer: Timer) -> Summary {
    Summary {
        id: timer.id(),
        callback_kind: timer.definition.callback.kind().to_owned(),
        namespace: timer.definition.namespace,
        key: timer.definition.key,
        group: timer.definition.group,
        correlation_id: timer.definition.correlation_id,
        execute_at: timer.execute_at,
        status: timer.status,
        attempt: timer.attempt,
        last_error: timer.last_error,
        executed_at: timer.executed_at,
        created_at: timer.created_at,
        updated_at: timer.updated_at,
        revision: timer.revision,
    }
}

#[cfg(test)]
mod tests {
    use domain::{Span, Status};

    use super::*;
    use crate::{
        Reschedule,
        bulk::tests::create_many,
        rig::{NOW, Rig},
    };

    #[tokio::test]
    async fn a_selection_is_changed_and_nothing_else() {
        let rig = Rig::new();
        let ids = create_many(&rig, 4).await;
        let gone = TimerId::random(NOW);
        let spread = BulkWork::Reschedule(Reschedule::Spread(Span::from_secs(90)));
        let answer = rig.commands.bulk_selected(&spread, &[ids[3], gone, ids[1]]).await.unwrap();
        assert_eq!(answer, BulkAnswer::Done { changed: 2, skipped: 1 });
        let due = async |id| rig.commands.get(id).await.unwrap().execute_at.since(NOW).as_micros() / 1_000_000;
        assert_eq!((due(ids[3]).await, due(ids[1]).await), (0, 45));
        assert_eq!(due(ids[0]).await, due(ids[2]).await, "these were not selected");
        let deleted = rig.commands.bulk_selected(&BulkWork::Delete, &ids).await.unwrap();
        assert_eq!(deleted, BulkAnswer::Done { changed: 0, skipped: 4 }, "none of them has ended");
        assert_eq!(rig.commands.get(ids[0]).await.unwrap().status, Status::Pending);
    }
}
