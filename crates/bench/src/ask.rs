//! The kinds of requests that a load is made of, and what their answers confirm.

use crate::{client::Answer, requests::Requests, wire};

/// The status of each timer that a batch has registered.
const REGISTERED: &[u8] = br#""status":201"#;

/// One kind of request, each about one timer of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Create,
    /// A cancel by id; the timer must have been created with that id.
    Cancel,
    /// An update by id; the timer must have been created with that id.
    Update,
    /// The first page of a list; the number decides which.
    List,
}

impl Ask {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "creates",
            Self::Cancel => "cancels",
            Self::Update => "updates",
            Self::List => "lists",
        }
    }

    pub fn write(self, requests: &mut Requests, number: u64, request: &mut Vec<u8>) {
        match self {
            Self::Create => requests.create(number, request),
            Self::Cancel => requests.cancel(number, request),
            Self::Update => requests.update(number, request),
            Self::List => requests.list(number, request),
        }
    }

    /// For how many of `timers` an answer confirms that it is done, and on disk where it is a change.
    pub fn confirmed(self, answer: &Answer<'_>, timers: u64) -> u64 {
        match (self, timers, answer.status) {
            (Self::Create, 1, 201) | (Self::Cancel | Self::Update | Self::List, 1, 200) => 1,
            (Self::Create, 2.., 200) => (wire::occurrences(answer.body, REGISTERED) as u64).min(timers),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_answer_says_is_done_counts() {
        let table: [(Ask, u16, &[u8], u64, u64); 9] = [
            (Ask::Create, 201, b"{}", 1, 1),
            (Ask::Create, 200, b"{}", 1, 0),
            (Ask::Create, 400, b"{}", 1, 0),
            (Ask::Create, 200, br#"[{"status":201,"timer":{"status":"pending"}},{"status":400}]"#, 500, 1),
            (Ask::Create, 503, br#"[{"status":201}]"#, 500, 0),
            (Ask::Create, 200, b"", 500, 0),
            (Ask::Cancel, 200, b"{}", 1, 1),
            (Ask::Update, 404, b"{}", 1, 0),
            (Ask::List, 503, b"{}", 1, 0),
        ];
        for (ask, status, body, timers, expected) in table {
            assert_eq!(ask.confirmed(&Answer { status, body }, timers), expected, "{ask:?} {status} {timers}");
        }
    }
}
