//! What MongoDB answers of the writes of a command.

use domain::Cause;
use mongodb::bson::{Bson, Document};
use store::StoreError;
use store_partitioned::{Condition, Outcome, Write};

use crate::failure;

/// How one write of a command ended.
#[derive(Debug, Clone)]
pub enum Answer {
    Ended(Outcome),
    /// Another writer inserted the row between the look for it and the insert.
    LostRace,
    /// It shared an operation that applied this number of its changes, not all, or that failed and may have applied some before.
    Shared(Result<usize, StoreError>),
}

impl Answer {
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Ended(outcome) => outcome,
            Self::LostRace => Outcome::Failed(StoreError::Unavailable("other writers keep inserting the same row".into())),
            Self::Shared(Ok(_)) => unknown("which rows of an operation were changed is not known"),
            Self::Shared(Err(error)) => unknown(Cause::of(error)),
        }
    }
}

fn unknown(why: impl Into<Cause>) -> Outcome {
    Outcome::Failed(StoreError::Unknown(why.into()))
}

/// What the reply says of each write. Where it says nothing, nothing is known.
pub fn answers(writes: &[&Write], operations: &[Vec<usize>], reply: &Document) -> Vec<Answer> {
    let mut answers = vec![Answer::Ended(unknown("MongoDB did not answer for this row")); writes.len()];
    let results = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    for result in results.into_iter().flatten().filter_map(Bson::as_document) {
        let number = integer(result, "idx").and_then(|number| usize::try_from(number).ok());
        match number.and_then(|number| operations.get(number)).map(Vec::as_slice) {
            None => {}
            Some([place]) => answers[*place] = answer(writes[*place], result),
            Some(places) => {
                let shared = shared_answer(places.len(), result);
                places.iter().for_each(|place| answers[*place] = shared.clone());
            }
        }
    }
    // It was written, but not where it has to be: it may be lost in a fail-over.
    if let Ok(error) = reply.get_document("writeConcernError") {
        let why = error.get_str("errmsg").unwrap_or("the write concern was not met");
        let may_be_applied = |answer: &&mut Answer| matches!(answer, Answer::Ended(Outcome::Applied) | Answer::Shared(_));
        for answer in answers.iter_mut().filter(may_be_applied) {
            *answer = Answer::Ended(unknown(why));
        }
    }
    answers
}

/// The answer for each of the `changes` changes that share an operation.
fn shared_answer(changes: usize, result: &Document) -> Answer {
    if let Some((code, message)) = error(result) {
        return Answer::Shared(Err(failure::of_write(code, message)));
    }
    match integer(result, "n").and_then(|applied| usize::try_from(applied).ok()) {
        Some(0) => Answer::Ended(Outcome::Refused),
        Some(applied) if applied == changes => Answer::Ended(Outcome::Applied),
        Some(applied) => Answer::Shared(Ok(applied)),
        None => Answer::Shared(Err(StoreError::Unknown("MongoDB did not say how many rows were changed".into()))),
    }
}

fn answer(write: &Write, result: &Document) -> Answer {
    if let Some((code, message)) = error(result) {
        return match write.condition {
            Condition::Absent if code == failure::DUPLICATE_KEY => Answer::Ended(Outcome::Refused),
            Condition::Any if code == failure::DUPLICATE_KEY => Answer::LostRace,
            _ => Answer::Ended(Outcome::Failed(failure::of_write(code, message))),
        };
    }
    let is_found = integer(result, "n").is_some_and(|found| found > 0);
    // What is gone already needs no removal.
    let is_applied = is_found || write.condition == Condition::Any;
    Answer::Ended(if is_applied { Outcome::Applied } else { Outcome::Refused })
}

/// The code and the message of an operation that failed.
fn error(result: &Document) -> Option<(i32, &str)> {
    let code = integer(result, "code").and_then(|code| i32::try_from(code).ok())?;
    Some((code, result.get_str("errmsg").unwrap_or("the write failed")))
}

fn integer(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => i64::try_from(*number as i128).ok(),
        _ => None,
    }
}

// ── Changes that share an operation ────────────────────────────────────────────────────────────────────────────────

/// What the row of a change was seen to have after the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The version of the change, which no other write has.
    Written,
    /// The version of its condition.
    Untouched,
    /// Another version, or there is no such row.
    Other,
}

/// How each change of a shared operation ended: by what the operation told, and by what the rows were seen to have after it.
///
/// If as many rows carry the version of their change as were applied, the remaining rows were refused. If fewer do, some were changed again
/// since, and nothing is known of those with other versions. An operation that failed did not reach the rows that are untouched.
pub fn judge(told: &Result<usize, StoreError>, rows: &[Seen]) -> Vec<Outcome> {
    let written = rows.iter().filter(|row| **row == Seen::Written).count();
    let outcome = |row: &Seen| match (row, told) {
        (Seen::Written, _) => Outcome::Applied,
        (Seen::Untouched, Err(error)) => Outcome::Failed(error.clone()),
        (Seen::Other, Err(error)) => unknown(Cause::of(error.clone())),
        (_, Ok(applied)) if *applied == written => Outcome::Refused,
        (_, Ok(_)) => unknown("a row that shared the operation was changed again since"),
    };
    rows.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;
    use store_partitioned::{Change, Positions, Version};

    use super::*;

    fn put(condition: Condition) -> Write {
        let change =
            Change::Put { version: Version(7), head: Vec::new(), body: None, log: None, positions: Positions::default() };
        Write { key: vec![1], condition, change, before: Positions::default() }
    }

    fn name(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome::Applied => "applied",
            Outcome::Refused => "refused",
            Outcome::Failed(error) => error.kind(),
        }
    }

    fn shown(writes: &[Write], operations: &[Vec<usize>], reply: &Document) -> Vec<&'static str> {
        let name = |answer: &Answer| match answer {
            Answer::Ended(outcome) => name(outcome),
            Answer::LostRace => "lost",
            Answer::Shared(Ok(_)) => "shared",
            Answer::Shared(Err(_)) => "shared failure",
        };
        answers(&writes.iter().collect::<Vec<_>>(), operations, reply).iter().map(name).collect()
    }

    #[test]
    fn each_row_has_its_answer() {
        let writes = [
            put(Condition::Absent),
            put(Condition::Absent),
            put(Condition::Is(Version(1))),
            put(Condition::Is(Version(1))),
            put(Condition::Any),
            put(Condition::Is(Version(1))),
            put(Condition::Is(Version(1))),
        ];
        let results = vec![
            doc! { "ok": 1.0, "idx": 0, "n": 1 },
            doc! { "ok": 0.0, "idx": 1, "code": 11_000, "errmsg": "duplicate" },
            doc! { "ok": 1.0, "idx": 2, "n": 1, "nModified": 1 },
            doc! { "ok": 1.0, "idx": 3, "n": 0 },
            doc! { "ok": 0.0, "idx": 4, "code": 11_000, "errmsg": "duplicate" },
            doc! { "ok": 0.0, "idx": 5, "code": 14_031, "errmsg": "no space" },
        ];
        let operations: Vec<Vec<usize>> = (0..writes.len()).map(|place| vec![place]).collect();
        let mut reply = doc! { "cursor": { "id": 0_i64, "firstBatch": results } };
        assert_eq!(shown(&writes, &operations, &reply), ["applied", "refused", "applied", "refused", "lost", "full", "unknown"]);
        reply.insert("writeConcernError", doc! { "code": 64, "errmsg": "timed out" });
        assert_eq!(shown(&writes, &operations, &reply), ["unknown", "refused", "unknown", "refused", "lost", "full", "unknown"]);
    }

    #[test]
    fn changes_that_share_an_operation_share_its_answer() {
        let writes = vec![put(Condition::Is(Version(1))); 3];
        let operations = [vec![1], vec![0, 2]];
        let reply = |result: Document| {
            let alone = doc! { "ok": 1.0, "idx": 0, "n": 0 };
            doc! { "cursor": { "id": 0_i64, "firstBatch": [alone, result] } }
        };
        let all = doc! { "ok": 1.0, "idx": 1, "n": 2 };
        let none = doc! { "ok": 1.0, "idx": 1, "n": 0 };
        let some = doc! { "ok": 1.0, "idx": 1, "n": 1 };
        let failed = doc! { "ok": 0.0, "idx": 1, "n": 0, "code": 14_031, "errmsg": "no space" };
        let silent = doc! { "ok": 1.0, "idx": 1 };
        for (result, expected, unreplicated) in [
            (all, "applied", "unknown"),
            (none, "refused", "refused"),
            (some, "shared", "unknown"),
            (failed, "shared failure", "unknown"),
            (silent, "shared failure", "unknown"),
        ] {
            let mut reply = reply(result);
            assert_eq!(shown(&writes, &operations, &reply), [expected, "refused", expected], "{reply}");
            reply.insert("writeConcernError", doc! { "code": 64, "errmsg": "timed out" });
            assert_eq!(shown(&writes, &operations, &reply), [unreplicated, "refused", unreplicated], "{reply}");
        }
    }

    #[test]
    fn each_shared_operation_has_its_own_count() {
        let writes = vec![put(Condition::Is(Version(1))); 4];
        let results = vec![doc! { "ok": 1.0, "idx": 0, "n": 1 }, doc! { "ok": 1.0, "idx": 1, "n": 2 }];
        let reply = doc! { "cursor": { "id": 0_i64, "firstBatch": results } };
        assert_eq!(shown(&writes, &[vec![0, 3], vec![1, 2]], &reply), ["shared", "applied", "applied", "shared"]);
    }

    #[test]
    fn rows_tell_what_a_shared_operation_does_not() {
        use Seen::{Other, Untouched, Written};
        let failed = |code| Err(failure::of_write(code, "it failed"));
        for (told, rows, expected) in [
            (Ok(2), vec![Written, Other, Written, Untouched], vec!["applied", "refused", "applied", "refused"]),
            (Ok(0), vec![Other, Untouched], vec!["refused", "refused"]),
            // One of the other two was applied, and its row was changed again since.
            (Ok(2), vec![Written, Other, Other], vec!["applied", "unknown", "unknown"]),
            (failed(14_031), vec![Written, Untouched, Other], vec!["applied", "full", "unknown"]),
            (failed(10_334), vec![Written, Untouched, Other], vec!["applied", "unavailable", "unknown"]),
            // A server that steps down may have done it all the same.
            (failed(11_602), vec![Written, Untouched, Other], vec!["applied", "unknown", "unknown"]),
        ] {
            let outcomes = judge(&told, &rows);
            assert_eq!(outcomes.iter().map(name).collect::<Vec<_>>(), expected, "{told:?}, {rows:?}");
        }
    }

    #[test]
    fn the_cause_of_a_shared_failure_is_told() {
        let outcome = Answer::Shared(Err(failure::of_write(14_031, "no space"))).outcome();
        assert!(
            matches!(&outcome, Outcome::Failed(StoreError::Unknown(cause)) if cause.as_str().contains("no space")),
            "{outcome:?}"
        );
    }
}
