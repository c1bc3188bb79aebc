use crate::{Event, Fingerprint, RequestedTime, Status};

/// What a create does when its namespace and key are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, utoipa::ToSchema)]
#[schema(
    rename_all = "lowercase",
    description = "For a key that is in use. `reject` answers with the timer that is there if this request means the same, and with 409 if not. \
    `replace` puts this request in its place, and begins anew if it had ended. `keep` gives a waiting timer only the new time, and leaves one that has ended alone."
)]
pub enum OnConflict {
    /// The same content yields the existing timer; other content is refused.
    #[default]
    Reject,
    /// The new content replaces the old.
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

/// The decision about a taken id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Answer with the existing timer, unchanged.
    Existing,
    /// Refuse.
    Conflict,
    /// The pending or paused timer takes the new content and time, and stays pending or paused.
    Overwrite,
    /// The same for the new time only.
    Move,
    /// The finished timer starts a new life with the new content.
    Revive,
}

/// The properties of a request or a timer by which a conflict is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    pub fingerprint: Fingerprint,
    /// `None` for a stored one that this program does not understand: it equals no other.
    pub asked: Option<RequestedTime>,
    /// Whether the timer belongs to a command, which is owed an event, or has a callback.
    pub is_event: bool,
}

/// The table of conflicts: the same decision for every store and every API.
pub fn resolve(mode: OnConflict, status: Status, existing: Content, new: Content) -> Resolution {
    match (mode, status) {
        (OnConflict::Reject, _) if existing == new => Resolution::Existing,
        (OnConflict::Reject, Status::Executing) => Resolution::Existing,
        (OnConflict::Reject, _) => Resolution::Conflict,
        (OnConflict::Replace, Status::Pending | Status::Paused) => Resolution::Overwrite,
        (OnConflict::Replace, Status::Executing) => Resolution::Conflict,
        (OnConflict::Replace, finished) if finished.after(Event::Revive).is_some() => Resolution::Revive,
        // A command must not move a timer that has a callback, nor a request one whose event a client awaits.
        (OnConflict::Keep, Status::Pending | Status::Paused) if existing.is_event != new.is_event => Resolution::Conflict,
        (OnConflict::Keep, Status::Pending | Status::Paused) => Resolution::Move,
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
        use Status::{Canceled, Completed, Executing, Expired, Failed, Paused, Pending};
        // Mode, status, same content, other content.
        let table = [
            (Reject, Pending, Existing, Conflict),
            (Reject, Executing, Existing, Existing),
            (Reject, Completed, Existing, Conflict),
            (Reject, Failed, Existing, Conflict),
            (Reject, Canceled, Existing, Conflict),
            (Reject, Paused, Existing, Conflict),
            (Reject, Expired, Existing, Conflict),
            (Replace, Pending, Overwrite, Overwrite),
            (Replace, Executing, Conflict, Conflict),
            (Replace, Completed, Revive, Revive),
            (Replace, Failed, Revive, Revive),
            (Replace, Canceled, Revive, Revive),
            (Replace, Paused, Overwrite, Overwrite),
            (Replace, Expired, Revive, Revive),
            (Keep, Pending, Move, Move),
            (Keep, Executing, Existing, Existing),
            (Keep, Completed, Existing, Existing),
            (Keep, Failed, Existing, Existing),
            (Keep, Canceled, Existing, Existing),
            (Keep, Paused, Move, Move),
            (Keep, Expired, Existing, Existing),
        ];
        let at = Some(RequestedTime::At(Timestamp::from_micros(1)));
        let old = Content { fingerprint: Fingerprint([0; 16]), asked: at, is_event: false };
        for (mode, status, same, other) in table {
            assert_eq!(resolve(mode, status, old, old), same, "{mode:?} {status} same");
            let content = Content { fingerprint: Fingerprint([1; 16]), ..old };
            assert_eq!(resolve(mode, status, old, content), other, "{mode:?} {status} other content");
            let later = Content { asked: Some(RequestedTime::At(Timestamp::from_micros(2))), ..old };
            assert_eq!(resolve(mode, status, old, later), other, "{mode:?} {status} other time");
            let event = Content { is_event: true, ..content };
            let of_another_kind = if mode == Keep && matches!(status, Pending | Paused) { Conflict } else { other };
            assert_eq!(resolve(mode, status, old, event), of_another_kind, "{mode:?} {status} an event instead");
            assert_eq!(resolve(mode, status, event, old), of_another_kind, "{mode:?} {status} instead of an event");
        }
    }
}
