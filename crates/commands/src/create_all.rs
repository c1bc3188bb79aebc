use std::time::Duration;

use domain::NewTimer;
use futures_util::{StreamExt, stream};
use store::{Created, StoreError, StoreResult};
use tokio::time::Instant;

use crate::{
    CommandError, Commands, NewTimerRequest, Outcome, call,
    create::{Prepared, TooLate, within_namespace},
};

/// How long the outcomes of one batch are read back.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

/// How many late requests of a batch are looked up at the same time, to see whether they repeat a registered timer.
const LOOKED_UP_AT_ONCE: usize = 8;

/// What answers one request of a batch.
enum AnsweredBy {
    /// The result at this index of the store's batch.
    Batch(usize),
    /// The result at this index of the late requests.
    LookUp(usize),
    Refusal(CommandError),
}

impl Commands {
    /// Registers many timers in one group commit, each by itself: one that is refused does not hinder its neighbours. Answers
    /// in the order of the requests. Once this returns, the results are on disk.
    pub async fn create_all(&self, requests: Vec<NewTimerRequest>) -> Vec<Result<Outcome, CommandError>> {
        let mut asked = Vec::with_capacity(requests.len());
        let mut batch = Vec::with_capacity(requests.len());
        let mut late = Vec::new();
        for request in requests {
            asked.push(match self.prepare(request) {
                Ok(Prepared::New(new)) => {
                    batch.push(new);
                    AnsweredBy::Batch(batch.len() - 1)
                }
                Ok(Prepared::TooLate(request)) => {
                    late.push(request);
                    AnsweredBy::LookUp(late.len() - 1)
                }
                Err(refusal) => AnsweredBy::Refusal(refusal),
            });
        }
        let mut repeated: Vec<_> = self.repeated_all(late).await.into_iter().map(Some).collect();
        let mut created: Vec<_> = self.register_all(batch).await.into_iter().map(Some).collect();
        let missing = || StoreError::Corrupt("the store gave no answer to a create".into());
        let answer = |asked| match asked {
            AnsweredBy::Refusal(refusal) => Err(refusal),
            AnsweredBy::LookUp(index) => repeated.get_mut(index).and_then(Option::take).unwrap_or_else(|| Err(missing().into())),
            AnsweredBy::Batch(index) => match created.get_mut(index).and_then(Option::take).unwrap_or_else(|| Err(missing())) {
                Ok(created) => self.answer(created),
                Err(error) => Err(error.into()),
            },
        };
        asked.into_iter().map(answer).collect()
    }

    /// Looks up the late requests, a few at the same time. The timeout of an unavailable store is waited for once, not once for
    /// each.
    async fn repeated_all(&self, late: Vec<TooLate>) -> Vec<Result<Outcome, CommandError>> {
        let count = late.len();
        let mut answers = Vec::with_capacity(count);
        let mut lookups = stream::iter(late).map(|late| self.repeated(late)).buffered(LOOKED_UP_AT_ONCE);
        while let Some(answer) = lookups.next().await {
            let away = match &answer {
                Err(CommandError::Unavailable(cause)) => Some(cause.clone()),
                _ => None,
            };
            answers.push(answer);
            if let Some(cause) = away {
                answers.resize_with(count, || Err(CommandError::Unavailable(cause.clone())));
                break;
            }
        }
        answers
    }

    async fn register_all(&self, batch: Vec<NewTimer>) -> Vec<StoreResult<Created>> {
        if batch.is_empty() {
            return Vec::new();
        }
        let cause = match call::writing(self.stores.timers.create(batch.clone())).await {
            Ok(created) => {
                return created.into_iter().zip(&batch).map(|(created, new)| Ok(within_namespace(created, new))).collect();
            }
            Err(error) => error,
        };
        let mut answers = Vec::with_capacity(batch.len());
        // Outcomes that were read back are returned. As soon as one stays unknown, or the whole takes too long, the rest stay
        // unknown too: otherwise a slow store would be waited for once for each timer.
        let mut pending = batch.iter();
        if let StoreError::Unknown(_) = cause {
            let until = Instant::now() + CONFIRMED_WITHIN;
            for new in pending.by_ref() {
                let answer = self.confirm(new, cause.clone()).await;
                let is_unknown = matches!(answer, Err(StoreError::Unknown(_)));
                answers.push(answer);
                if is_unknown || Instant::now() > until {
                    break;
                }
            }
        }
        answers.extend(pending.map(|_| Err(cause.clone())));
        answers
    }
}

#[cfg(test)]
mod tests;
