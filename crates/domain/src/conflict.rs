use crate::{Asked, Event, Fingerprint, Status};

/// What a create does when its namespace and key are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The same content is the existing timer; other content is refused.
    #[default]
    Reject,
    /// The new content takes the place of the old.
    Replace,
    /// The existing timer stays, and takes only the new time.
    Keep,
}

impl OnConflict {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "reject" => Some(Self::Reject),
            "replace" => Some(Self::Replace),
            "keep" => Some(Self::Keep),
            _ => None,
        }
    }
}

/// What is to be done about a taken id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Answer with the existing timer, unchanged.
    Existing,
    /// Refuse.
    Conflict,
    /// The pending timer takes the new content and time.
    Overwrite,
    /// The pending timer takes the new time only.
    Move,
    /// The finished timer starts a new life with the new content.
    Revive,
}

/// The table of conflicts: the same decision for every store and every door.
pub fn resolve(mode: OnConflict, status: Status, existing: (Fingerprint, Asked), new: (Fingerprint, Asked)) -> Resolution {
    match (mode, status) {
        (OnConflict::Reject, _) if existing == new => Resolution::Existing,
        (OnConflict::Reject, Status::Executing) => Resolution::Existing,
        (OnConflict::Reject, _) => Resolution::Conflict,
        (OnConflict::Replace, Status::Pending) => Resolution::Overwrite,
        (OnConflict::Replace, Status::Executing) => Resolution::Conflict,
        (OnConflict::Replace, finished) if finished.after(Event::Revive).is_some() => Resolution::Revive,
        (OnConflict::Keep, Status::Pending) => Resolution::Move,
        (OnConflict::Replace | OnConflict::Keep, _) => Resolution::Existing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn the_table_of_conflicts() {
        use OnConflict::{Keep, Reject, Replace};
        use Resolution::{Conflict, Existing, Move, Overwrite, Revive};
        use Status::{Canceled, Completed, Executing, Failed, Pending};
        // mode, status, same content, other content
        let table = [
            (Reject, Pending, Existing, Conflict),
            (Reject, Executing, Existing, Existing),
            (Reject, Completed, Existing, Conflict),
            (Reject, Failed, Existing, Conflict),
            (Reject, Canceled, Existing, Conflict),
            (Replace, Pending, Overwrite, Overwrite),
            (Replace, Executing, Conflict, Conflict),
            (Replace, Completed, Revive, Revive),
            (Replace, Failed, Revive, Revive),
            (Replace, Canceled, Revive, Revive),
            (Keep, Pending, Move, Move),
            (Keep, Executing, Existing, Existing),
            (Keep, Completed, Existing, Existing),
            (Keep, Failed, Existing, Existing),
            (Keep, Canceled, Existing, Existing),
        ];
        let at = Asked::At(Timestamp::from_micros(1));
        let old = (Fingerprint([0; 16]), at);
        for (mode, status, same, other) in table {
            assert_eq!(resolve(mode, status, old, old), same, "{mode:?} {status} same");
            assert_eq!(resolve(mode, status, old, (Fingerprint([1; 16]), at)), other, "{mode:?} {status} other content");
            let later = Asked::At(Timestamp::from_micros(2));
            assert_eq!(resolve(mode, status, old, (Fingerprint([0; 16]), later)), other, "{mode:?} {status} other time");
        }
    }
}
