use std::time::Duration;

use domain::NewTimer;
use store::{Created, StoreError, StoreResult};
use tokio::time::Instant;

use crate::{CommandError, Commands, NewTimerRequest, Outcome, call, create::Prepared};

/// How long the outcomes of one batch are read back.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

/// What is known of one request of a batch before the store is asked.
enum Asked {
    /// It is at this place of what the store is asked to create.
    At(usize),
    Answered(Box<Result<Outcome, CommandError>>),
}

impl Commands {
    /// Registers many timers in one commit, each by itself: one that is refused does not hinder its neighbours. Answers in the
    /// order of the requests. When this answers, what it says is on disk.
    pub async fn create_all(&self, requests: Vec<NewTimerRequest>) -> Vec<Result<Outcome, CommandError>> {
        let mut asked = Vec::with_capacity(requests.len());
        let mut batch = Vec::with_capacity(requests.len());
        for request in requests {
            asked.push(match self.prepare(request) {
                Ok(Prepared::New(new)) => {
                    batch.push(new);
                    Asked::At(batch.len() - 1)
                }
                Ok(Prepared::TooLate(late)) => Asked::Answered(Box::new(self.repeated(late).await)),
                Err(refusal) => Asked::Answered(Box::new(Err(refusal))),
            });
        }
        let mut created: Vec<_> = self.register_all(batch).await.into_iter().map(Some).collect();
        let missing = || StoreError::Corrupt("the store gave no answer to a create".to_owned());
        let answer = |asked| match asked {
            Asked::Answered(answer) => *answer,
            Asked::At(place) => match created.get_mut(place).and_then(Option::take).unwrap_or_else(|| Err(missing())) {
                Ok(created) => self.answer(created),
                Err(error) => Err(error.into()),
            },
        };
        asked.into_iter().map(answer).collect()
    }

    async fn register_all(&self, batch: Vec<NewTimer>) -> Vec<StoreResult<Created>> {
        if batch.is_empty() {
            return Vec::new();
        }
        let cause = match call::writing(self.store.create(batch.clone())).await {
            Ok(created) => return created.into_iter().map(Ok).collect(),
            Err(error) => error,
        };
        let mut answers = Vec::with_capacity(batch.len());
        // What has become certain is told; as soon as one stays unknown, or all of it takes too long, so do those behind it: a
        // store that is slow to answer about one timer would be waited for as often as there are timers.
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
