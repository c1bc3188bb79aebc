//! What a failure means to a caller, to the next step and to the session.
//!
//! ```text
//!                              before the commit was sent      while a commit is under way
//!   the server reports         not done                        not done
//!   the server ends it         not done                        unknown
//!   the connection breaks      not done                        unknown
//!   no answer in time          not done                        unknown
//! ```
//!
//! Each store has a table of what the error codes of its database mean.

use domain::Cause;
use store::{StoreError, Unreadable};

/// A failed step of a call: what to tell the caller, and what it means for the next step and for the session.
#[derive(Debug)]
pub struct Failure {
    pub error: StoreError,
    pub verdict: Verdict,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was done.
    NotDone,
    /// Nothing was done, because the server refused a value, not the work: a batch without it can succeed.
    Value,
    /// Nothing was done, only because other sessions were at it at the same time: the same call can be made again at once.
    Contention,
    /// Nothing was done, because another session held a row for longer than this one waits for it.
    Locked,
    /// Nothing was done, because a key is there already that this call took to be free.
    Duplicate,
    /// Nothing was done, because there is no space, or writing is not allowed.
    Full,
    /// Nothing was done, because this server only reads. After a fail-over the old address may lead to a standby; a new session
    /// may find the new primary.
    ReadOnly,
    /// Nothing was done, because what is stored makes no sense.
    Corrupt,
    /// Nothing was done, and the session is of no more use.
    Broken,
    /// It may have been done, and the session is of no more use.
    Lost,
    /// A part of it is done.
    PartlyDone,
}

impl Verdict {
    /// Whether the session must not be used again.
    pub const fn breaks_the_session(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Broken | Self::Lost)
    }

    const fn error(self) -> fn(Cause) -> StoreError {
        match self {
            Self::NotDone | Self::Value | Self::Contention | Self::Locked | Self::Duplicate | Self::Broken => {
                StoreError::Unavailable
            }
            Self::Full | Self::ReadOnly => StoreError::Full,
            Self::Corrupt => StoreError::Corrupt,
            Self::Lost | Self::PartlyDone => StoreError::Unknown,
        }
    }
}

impl Failure {
    pub fn new(verdict: Verdict, cause: impl Into<Cause>) -> Self {
        Self { error: verdict.error()(cause.into()), verdict }
    }

    /// The answer stays out.
    pub fn no_answer(what: impl Into<Cause>, may_be_done: bool) -> Self {
        Self::new(if may_be_done { Verdict::Lost } else { Verdict::Broken }, what)
    }

    /// Other sessions kept changing what this call wanted to change.
    pub fn contention(what: &str) -> Self {
        Self::new(Verdict::Contention, what)
    }

    /// Something was committed before this failure: whatever failed, part of the call is done.
    pub fn after_a_commit(self) -> Self {
        let verdict = if self.verdict.breaks_the_session() { Verdict::Lost } else { Verdict::PartlyDone };
        Self::new(verdict, Cause::of(self.error))
    }

    /// For a statement that a sound database never refuses: a row in its way, or a value, stays there however often it is tried.
    pub fn or_damage(self) -> Self {
        match (self.verdict, self.error) {
            (Verdict::Duplicate | Verdict::Value, StoreError::Unavailable(cause)) => Self::new(Verdict::Corrupt, cause),
            (verdict, error) => Self { error, verdict },
        }
    }

    /// The same, if there was such a commit.
    pub fn after_a_commit_if(self, something_was_committed: bool) -> Self {
        if something_was_committed { self.after_a_commit() } else { self }
    }
}

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Self {
        Self::new(Verdict::Corrupt, Cause::of(unreadable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_the_way_is_damage_where_there_can_be_none() {
        for (verdict, kind) in [
            (Verdict::Duplicate, "corrupt"),
            (Verdict::Value, "corrupt"),
            (Verdict::NotDone, "unavailable"),
            (Verdict::Full, "full"),
        ] {
            assert_eq!(Failure::new(verdict, "").or_damage().error.kind(), kind, "{verdict:?}");
        }
    }

    #[test]
    fn what_follows_a_commit_is_never_called_undone() {
        let failed = Failure::contention("another session").after_a_commit();
        assert!(!failed.error.is_not_done());
        assert_eq!(failed.verdict, Verdict::PartlyDone);
        let broken = Failure::no_answer("no word", false).after_a_commit();
        assert!(!broken.error.is_not_done() && broken.verdict.breaks_the_session());
    }
}
