//! Whether one timer can have lived in such a way that every answer about it was true when it was given.
//!
//! ```text
//!   absent ──create──▶ live (pending or executing) ──after a call──▶ completed
//!                       │   ▲
//!                       │   └─ update: another version
//!                       └─cancel──▶ canceled
//! ```

use std::collections::HashSet;

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Pending or executing: it goes from one to the other and back without being asked.
    Live,
    Completed,
    Canceled,
}

/// What was done, or seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create {
        version: u32,
    },
    Update {
        version: u32,
    },
    Cancel,
    /// Refused, because it stood so.
    Refused(Status),
    Read {
        status: Status,
        version: u32,
    },
    Call {
        version: u32,
    },
    /// Surely not done.
    Nothing,
}

impl Act {
    pub fn makes(&self, wanted: u32) -> bool {
        matches!(self, Self::Create { version } | Self::Update { version } if *version == wanted)
    }
}

/// An operation of a client, which took effect at one instant of this time. Without an end it may have taken effect or not.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub from: i64,
    pub to: i64,
    pub act: Act,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct State {
    status: Option<Status>,
    version: u32,
    was_called: bool,
}

impl State {
    /// What follows, if this can happen here.
    fn after(self, act: Act) -> Option<Self> {
        let is_live = self.status == Some(Status::Live);
        match act {
            Act::Nothing => Some(self),
            Act::Create { version } => {
                self.status.is_none().then_some(Self { status: Some(Status::Live), version, was_called: false })
            }
            Act::Update { version } => is_live.then_some(Self { version, was_called: false, ..self }),
            // A client that cancels what is canceled already has what it wanted.
            Act::Cancel if self.status == Some(Status::Canceled) => Some(self),
            Act::Cancel => is_live.then_some(Self { status: Some(Status::Canceled), ..self }),
            Act::Call { version } => (is_live && version == self.version).then_some(Self { was_called: true, ..self }),
            Act::Refused(Status::Completed) if is_live && self.was_called => {
                Some(Self { status: Some(Status::Completed), ..self })
            }
            Act::Refused(status) => (self.status == Some(status)).then_some(self),
            Act::Read { status, version } => self.after(Act::Refused(status)).filter(|state| state.version == version),
        }
    }
}

/// Whether there is an order in which each of these can follow the one before, and each happens in its own time.
pub fn exists(all: &[Operation]) -> bool {
    assert!(all.len() <= 64, "too many to try every order: {}", all.len());
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, State::default())];
    while let Some((done, state)) = open.pop() {
        let left = || all.iter().enumerate().filter(|(place, _)| done & (1 << place) == 0);
        let Some(first_end) = left().map(|(_, asked)| asked.to).min().filter(|end| *end < i64::MAX) else { return true };
        for (place, asked) in left().filter(|(_, asked)| asked.from <= first_end) {
            if let Some(state) = state.after(asked.act)
                && seen.insert((done | 1 << place, state))
            {
                open.push((done | 1 << place, state));
            }
        }
    }
    false
}

/// How `GET` shows a timer.
pub fn read(timer: &Value) -> Act {
    let version = timer["callback_config"]["payload"]["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    Act::Read { status: status(&timer["status"]), version: version.unwrap_or_else(|| panic!("a version in {timer}")) }
}

pub fn status(text: &Value) -> Status {
    match text.as_str() {
        Some("pending" | "executing") => Status::Live,
        Some("completed") => Status::Completed,
        Some("canceled") => Status::Canceled,
        _ => panic!("a timer that should have ended well is {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(from: i64, to: i64, act: Act) -> Operation {
        Operation { from, to, act }
    }

    #[test]
    fn answers_that_no_order_explains_are_found() {
        const NEVER: i64 = i64::MAX;
        let create = asked(0, 1, Act::Create { version: 1 });
        let update = |from, to| asked(from, to, Act::Update { version: 2 });
        let cancel = |from, to| asked(from, to, Act::Cancel);
        let call = |from, version| asked(from, from + 1, Act::Call { version });
        let read = |from, status, version| asked(from, from + 1, Act::Read { status, version });
        let refused = |from, status| asked(from, from + 1, Act::Refused(status));
        for (what, asked, is_possible) in [
            ("delivered", vec![create, call(5, 1), read(9, Status::Completed, 1)], true),
            ("canceled", vec![create, cancel(2, 3), read(9, Status::Canceled, 1)], true),
            ("updated", vec![create, update(2, 3), call(5, 2), read(9, Status::Completed, 2)], true),
            ("a cancel without an answer", vec![create, cancel(2, NEVER), call(5, 1), read(9, Status::Completed, 1)], true),
            ("the same, carried out", vec![create, cancel(2, NEVER), read(9, Status::Canceled, 1)], true),
            ("two at once", vec![create, update(2, 6), cancel(3, 4), read(9, Status::Canceled, 2)], true),
            ("called, then given back and canceled", vec![create, call(5, 1), cancel(7, 8), read(9, Status::Canceled, 1)], true),
            ("a create without an answer", vec![asked(0, NEVER, Act::Create { version: 1 })], true),
            ("completed without a call", vec![create, read(9, Status::Completed, 1)], false),
            ("called after a cancel", vec![create, cancel(2, 3), call(5, 1)], false),
            ("the old version after an update", vec![create, update(2, 3), call(5, 1)], false),
            ("a lost update", vec![create, update(2, 3), call(5, 1), read(9, Status::Completed, 1)], false),
            ("a lost cancel", vec![create, cancel(2, 3), read(9, Status::Live, 1)], false),
            ("called before it was created", vec![asked(4, 5, Act::Create { version: 1 }), call(0, 1)], false),
            ("called after its end", vec![create, call(2, 1), refused(5, Status::Completed), call(7, 1)], false),
            ("canceled twice", vec![create, cancel(2, 3), cancel(5, 6)], true),
            ("canceled after its end", vec![create, call(2, 1), refused(5, Status::Completed), cancel(7, 8)], false),
            ("updated after a cancel", vec![create, cancel(2, 3), update(5, 6)], false),
            ("read as it was before", vec![create, update(2, 3), read(5, Status::Live, 1)], false),
            ("refused as completed too early", vec![create, refused(2, Status::Completed), call(5, 1)], false),
            ("a call for what was refused", vec![asked(0, 1, Act::Nothing), call(5, 1)], false),
        ] {
            assert_eq!(exists(&asked), is_possible, "{what}");
        }
    }
}
