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
    /// The number of calls that still get this answer, before the next one for that path counts; every call if `None`.
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

    /// This takes the place of those for the same path, and all others stay. Refused where there are [`ANSWERS_MAX`] others.
    pub fn set(&self, answer: Answer) -> bool {
        let mut answers = self.locked();
        answers.retain(|known| known.path != answer.path);
        if answers.len() >= ANSWERS_MAX {
            return false;
        }
        // One for every path must not stand before one for a path of its own.
        let at = if answer.path.is_some() { 0 } else { answers.len() };
        answers.insert(at, answer);
        true
    }

    /// Those for this path are forgotten; `None` is every path.
    pub fn remove(&self, path: Option<&str>) {
        self.locked().retain(|known| known.path.as_deref() != path);
    }

    /// What is programmed and was not yet given as often as it should, in the order in which it counts.
    pub fn list(&self) -> Vec<Answer> {
        self.locked().iter().filter(|answer| answer.times != Some(0)).cloned().collect()
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
    fn an_answer_takes_the_place_of_that_for_its_path() {
        let answers = Answers::default();
        let status = |path: &str| answers.take(path).map(|answer| answer.reply.unwrap().status.as_u16());
        for one in [
            answer(None, None, 500),
            answer(Some("/x"), Some(2), 503),
            answer(Some("/y"), None, 404),
            answer(Some("/x"), Some(1), 429),
        ] {
            assert!(answers.set(one));
        }
        assert_eq!(answers.list().len(), 3);
        assert_eq!([status("/x"), status("/x"), status("/y"), status("/z")], [Some(429), Some(500), Some(404), Some(500)]);
        assert_eq!(
            answers.list().iter().filter_map(|one| one.path.as_deref()).collect::<Vec<_>>(),
            ["/y"],
            "that for /x was given"
        );
        answers.remove(None);
        assert_eq!([status("/x"), status("/y")], [None, Some(404)]);
        answers.replace((0..ANSWERS_MAX).map(|n| answer(Some(&format!("/{n}")), None, 200)).collect());
        assert!(!answers.set(answer(Some("/x"), None, 200)) && answers.set(answer(Some("/7"), None, 404)));
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
