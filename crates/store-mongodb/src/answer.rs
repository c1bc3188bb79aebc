//! What MongoDB answers of the writes of a command.

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
    /// Of those that went with it in one operation, itself included, so many were applied, and not all. `None` if that is not known.
    AmongOthers(Option<usize>),
}

impl Answer {
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Ended(outcome) => outcome,
            Self::LostRace => Outcome::Failed(StoreError::Unavailable("other writers keep inserting the same row".into())),
            Self::AmongOthers(_) => {
                Outcome::Failed(StoreError::Unknown("which rows of a command were changed is not known".into()))
            }
        }
    }
}

/// What the reply says of each write. Where it says nothing, nothing is known.
pub fn answers(writes: &[&Write], operations: &[Vec<usize>], reply: &Document) -> Vec<Answer> {
    let unknown = |why: &str| Answer::Ended(Outcome::Failed(StoreError::Unknown(why.into())));
    let mut answers: Vec<Answer> = writes.iter().map(|_| unknown("MongoDB did not answer for this row")).collect();
    let results = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    for result in results.into_iter().flatten().filter_map(Bson::as_document) {
        let number = integer(result, "idx").and_then(|number| usize::try_from(number).ok());
        match number.and_then(|number| operations.get(number)).map(Vec::as_slice) {
            None => {}
            Some([place]) => answers[*place] = answer(writes[*place], result),
            Some(places) => {
                let all = answer_of_many(places.len(), result);
                places.iter().for_each(|place| answers[*place] = all.clone());
            }
        }
    }
    // It was written, but not where it has to be: it may be lost in a fail-over.
    if let Ok(error) = reply.get_document("writeConcernError") {
        let why = error.get_str("errmsg").unwrap_or("the write concern was not met");
        let is_applied = |answer: &&mut Answer| matches!(answer, Answer::Ended(Outcome::Applied) | Answer::AmongOthers(_));
        for answer in answers.iter_mut().filter(is_applied) {
            *answer = unknown(why);
        }
    }
    answers
}

/// The answer for each of so many changes that went in one operation. One that failed may have changed some rows before.
fn answer_of_many(changes: usize, result: &Document) -> Answer {
    let applied = integer(result, "n").and_then(|applied| usize::try_from(applied).ok()).filter(|_| !result.contains_key("code"));
    if applied == Some(changes) { Answer::Ended(Outcome::Applied) } else { Answer::AmongOthers(applied) }
}

fn answer(write: &Write, result: &Document) -> Answer {
    if let Some(code) = integer(result, "code").and_then(|code| i32::try_from(code).ok()) {
        let message = result.get_str("errmsg").unwrap_or("the write failed");
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

fn integer(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => i64::try_from(*number as i128).ok(),
        _ => None,
    }
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

    fn shown(writes: &[Write], operations: &[Vec<usize>], reply: &Document) -> Vec<&'static str> {
        let name = |answer: &Answer| match answer {
            Answer::LostRace => "lost",
            Answer::AmongOthers(_) => "among others",
            Answer::Ended(Outcome::Applied) => "applied",
            Answer::Ended(Outcome::Refused) => "refused",
            Answer::Ended(Outcome::Failed(error)) => error.kind(),
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
    fn changes_that_went_together_share_an_answer() {
        let writes = vec![put(Condition::Is(Version(1))); 3];
        let operations = [vec![1], vec![0, 2]];
        let said = |result: Document| {
            let alone = doc! { "ok": 1.0, "idx": 0, "n": 0 };
            shown(&writes, &operations, &doc! { "cursor": { "id": 0_i64, "firstBatch": [alone, result] } })
        };
        assert_eq!(said(doc! { "ok": 1.0, "idx": 1, "n": 2 }), ["applied", "refused", "applied"]);
        for partly in [doc! { "ok": 1.0, "idx": 1, "n": 1 }, doc! { "ok": 0.0, "idx": 1, "n": 2, "code": 11_602 }] {
            assert_eq!(said(partly), ["among others", "refused", "among others"]);
        }
    }
}
