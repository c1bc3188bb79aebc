use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// How many answers can be programmed.
pub const ANSWERS_MAX: usize = 1_000;
/// How long an answer can be delayed.
pub const ANSWER_DELAY_MAX: Duration = Duration::from_secs(600);

/// What the receiver answers to calls of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Calls of this path, without its query; of every path if there is none.
    pub path: Option<String>,
    /// So many calls, and then the next answer for that path; every call if there is no number.
    pub times: Option<u64>,
    pub delay: Duration,
    /// `None`: the call is never answered.
    pub reply: Option<Reply>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The programmed answers. Of those for a path the first counts that has not been given as often as it should.
#[derive(Debug, Default)]
pub struct Answers(Mutex<Vec<Answer>>);

impl Answers {
    /// These take the place of all that were there.
    pub fn replace(&self, answers: Vec<Answer>) {
        *self.locked() = answers;
    }

    /// The answer to a call of this path, which counts as given. `None` where none is programmed.
    pub fn take(&self, path: &str) -> Option<Answer> {
        let mut answers = self.locked();
        let is_meant = |answer: &&mut Answer| answer.times != Some(0) && answer.path.as_deref().is_none_or(|named| named == path);
        let answer = answers.iter_mut().find(is_meant)?;
        answer.times = answer.times.map(|times| times - 1);
        Some(answer.clone())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Answer>> {
        // An answer that was counted and not given, or the other way round, is the worst that a panic can leave.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(path: Option<&str>, times: Option<u64>, status: u16) -> Answer {
        let status = StatusCode::from_u16(status).unwrap();
        let reply = Reply { status, headers: HeaderMap::new(), body: Bytes::new() };
        Answer { path: path.map(str::to_owned), times, delay: Duration::ZERO, reply: Some(reply) }
    }

    #[test]
    fn answers_are_given_in_order_as_often_as_they_should() {
        let answers = Answers::default();
        let status = |path: &str| answers.take(path).map(|answer| answer.reply.unwrap().status.as_u16());
        assert_eq!(status("/x"), None);
        answers.replace(vec![answer(Some("/x"), Some(2), 503), answer(Some("/x"), Some(1), 429), answer(Some("/y"), None, 404)]);
        assert_eq!([status("/x"), status("/y"), status("/x"), status("/x")], [Some(503), Some(404), Some(503), Some(429)]);
        assert_eq!([status("/x"), status("/y"), status("/z")], [None, Some(404), None]);
        answers.replace(vec![answer(Some("/x"), Some(0), 500), answer(None, Some(1), 503)]);
        assert_eq!([status("/x"), status("/x")], [Some(503), None]);
    }
}
