use crate::{Event, Expiry, Fingerprint, RequestedTime, Status, Timer, Timestamp};

/// What a create does when its namespace and key are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, utoipa::ToSchema)]
#[schema(
    rename_all = "lowercase",
    description = "For a key that is in use. `reject` answers with the timer that is there if this request means the same, and with 409 if not. \
    `replace` puts this request in its place, and begins anew if it had ended. `keep` gives a waiting timer only the new time, and leaves one that has ended alone; `earliest` and `latest` do so only where the new time is \
    earlier or later. `postpone`, which needs `delay`, lets a waiting timer be due that long from now, up to its `postpone_max`, and begins anew with this \
    request if it had ended; a timer that is being delivered at this moment is a 409."
)]
pub enum OnConflict {
    /// The same content yields the existing timer; other content is refused.
    #[default]
    Reject,
    /// The new content replaces the old.
    Replace,
    /// The existing timer stays, and takes only the new time.
    Keep,
    /// The existing timer stays, and is due the requested delay from now; one that has ended starts anew. Debounces what comes in
    /// quick succession, and lets a timer fire only when its client falls silent.
    Postpone,
    /// The existing timer stays, and takes the new time only if that is earlier.
    Earliest,
    /// The existing timer stays, and takes the new time only if that is later.
    Latest,
}

impl OnConflict {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "reject" => Some(Self::Reject),
            "replace" => Some(Self::Replace),
            "keep" => Some(Self::Keep),
            "postpone" => Some(Self::Postpone),
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            _ => None,
        }
    }

    /// Whether a pending timer takes no more than the time of the request.
    pub const fn only_moves(self) -> bool {
        matches!(self, Self::Keep | Self::Postpone | Self::Earliest | Self::Latest)
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
    /// The pending or paused timer takes this time, and nothing else of the request.
    Move(Timestamp),
    /// Refuse, because the pending or paused timer has an expiry of its own that is no later than the time that it would take.
    PastExpiry,
    /// The finished timer starts a new life with the new content.
    Revive,
}

/// The properties of a request or a timer by which a conflict is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub fingerprint: Fingerprint,
    /// `None` for a stored one that this program does not understand: it equals no other.
    pub asked: Option<RequestedTime>,
    /// Whether the timer belongs to a command, which is owed an event, or has a callback.
    pub is_event: bool,
    /// Whether the client knows the timer by a key, and not only by its id.
    pub is_keyed: bool,
}

/// The times by which it is decided when a pending timer is due next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// When the existing timer is due.
    pub due: Timestamp,
    /// Until when it may be postponed at most, if that is limited.
    pub postponed_until_max: Option<Timestamp>,
    /// When it expires, if it does.
    pub expiry: Option<Expiry>,
    /// The time that the request asks for.
    pub wanted: Timestamp,
}

impl Times {
    pub fn of(existing: &Timer, wanted: Timestamp) -> Self {
        let options = &existing.definition.options;
        let postponed_until_max = options.postpone_max.map(|span| existing.created_at.saturating_add(span));
        Self { due: existing.execute_at, postponed_until_max, expiry: options.expiry, wanted }
    }

    /// When a timer is due that is postponed to the wanted time. The limit never moves it to an earlier time.
    pub fn postponed(self) -> Timestamp {
        match self.postponed_until_max {
            Some(limit) if limit < self.wanted => limit.max(self.due),
            _ => self.wanted,
        }
    }

    fn moved_to(self, at: Timestamp) -> Resolution {
        if at == self.due { Resolution::Existing } else { self.taken(at) }
    }

    /// A time that leaves no time for a call is refused, as it is when a timer is registered or changed.
    fn taken(self, at: Timestamp) -> Resolution {
        match self.expiry.map(|expiry| expiry.check(at)) {
            Some(Err(_)) => Resolution::PastExpiry,
            Some(Ok(())) | None => Resolution::Move(at),
        }
    }
}

/// The table of conflicts: the same decision for every store and every API.
pub fn resolve(mode: OnConflict, status: Status, existing: Content, new: Content, times: Times) -> Resolution {
    match (mode, status) {
        (OnConflict::Reject, _) if existing == new => Resolution::Existing,
        // A key names the timer, whose call can no longer be changed. An id that a client chose stands for one content.
        (OnConflict::Reject, Status::Executing) if new.is_keyed => Resolution::Existing,
        (OnConflict::Reject, _) => Resolution::Conflict,
        (OnConflict::Replace, Status::Pending | Status::Paused) => Resolution::Overwrite,
        // What calls for a postponement while the call is under way would be lost if it were answered with the timer as it is.
        (OnConflict::Replace | OnConflict::Postpone, Status::Executing) => Resolution::Conflict,
        (OnConflict::Replace | OnConflict::Postpone, finished) if finished.after(Event::Revive).is_some() => Resolution::Revive,
        // A command must not move a timer that has a callback, nor a request one whose event a client awaits.
        (_, Status::Pending | Status::Paused) if existing.is_event != new.is_event => Resolution::Conflict,
        (OnConflict::Keep, Status::Pending | Status::Paused) => times.taken(times.wanted),
        (OnConflict::Postpone, Status::Pending | Status::Paused) => times.moved_to(times.postponed()),
        (OnConflict::Earliest, Status::Pending | Status::Paused) => times.moved_to(times.wanted.min(times.due)),
        (OnConflict::Latest, Status::Pending | Status::Paused) => times.moved_to(times.wanted.max(times.due)),
        (OnConflict::Replace | OnConflict::Keep | OnConflict::Postpone | OnConflict::Earliest | OnConflict::Latest, _) => {
            Resolution::Existing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    const DUE: Timestamp = Timestamp::from_micros(1_000);
    const LATER: Timestamp = Timestamp::from_micros(2_000);
    const EARLIER: Timestamp = Timestamp::from_micros(500);

    fn resolved(mode: OnConflict, status: Status, existing: &Content, new: &Content, times: Times) -> Resolution {
        resolve(mode, status, existing.clone(), new.clone(), times)
    }

    #[test]
    fn the_table_of_conflicts() {
        use OnConflict::{Earliest, Keep, Latest, Postpone, Reject, Replace};
        use Resolution::{Conflict, Existing, Move, Overwrite, Revive};
        use Status::{Canceled, Completed, Executing, Expired, Failed, Paused, Pending};
        // Mode, status, same content, other content or another time, which is later.
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
            (Keep, Pending, Move(DUE), Move(LATER)),
            (Keep, Executing, Existing, Existing),
            (Keep, Completed, Existing, Existing),
            (Keep, Failed, Existing, Existing),
            (Keep, Canceled, Existing, Existing),
            (Keep, Paused, Move(DUE), Move(LATER)),
            (Keep, Expired, Existing, Existing),
            (Postpone, Paused, Existing, Move(LATER)),
            (Earliest, Paused, Existing, Existing),
            (Latest, Paused, Existing, Move(LATER)),
            (Postpone, Pending, Existing, Move(LATER)),
            (Postpone, Executing, Conflict, Conflict),
            (Postpone, Completed, Revive, Revive),
            (Postpone, Failed, Revive, Revive),
            (Postpone, Canceled, Revive, Revive),
            (Postpone, Expired, Revive, Revive),
            (Earliest, Pending, Existing, Existing),
            (Earliest, Executing, Existing, Existing),
            (Earliest, Completed, Existing, Existing),
            (Earliest, Failed, Existing, Existing),
            (Earliest, Canceled, Existing, Existing),
            (Earliest, Expired, Existing, Existing),
            (Latest, Pending, Existing, Move(LATER)),
            (Latest, Executing, Existing, Existing),
            (Latest, Completed, Existing, Existing),
            (Latest, Failed, Existing, Existing),
            (Latest, Canceled, Existing, Existing),
            (Latest, Expired, Existing, Existing),
        ];
        let at = |instant| Times { due: DUE, postponed_until_max: None, expiry: None, wanted: instant };
        let old =
            Content { fingerprint: Fingerprint([0; 16]), asked: Some(RequestedTime::At(DUE)), is_event: false, is_keyed: true };
        for (mode, status, same, other) in table {
            assert_eq!(resolved(mode, status, &old, &old, at(DUE)), same, "{mode:?} {status} same");
            let later = Content { asked: Some(RequestedTime::At(LATER)), ..old };
            assert_eq!(resolved(mode, status, &old, &later, at(LATER)), other, "{mode:?} {status} other time");
            let content = Content { fingerprint: Fingerprint([1; 16]), ..later };
            assert_eq!(resolved(mode, status, &old, &content, at(LATER)), other, "{mode:?} {status} other content");
            let event = Content { is_event: true, ..content };
            let of_another_kind = if mode.only_moves() && matches!(status, Pending | Paused) { Conflict } else { other };
            for (existing, new, what) in [(&old, &event, "an event instead"), (&event, &old, "instead of an event")] {
                assert_eq!(resolved(mode, status, existing, new, at(LATER)), of_another_kind, "{mode:?} {status} {what}");
            }
        }
        let earlier = Content { asked: Some(RequestedTime::At(EARLIER)), ..old };
        for (mode, moved) in
            [(Keep, Move(EARLIER)), (Postpone, Move(EARLIER)), (Earliest, Move(EARLIER)), (Latest, Existing), (Reject, Conflict)]
        {
            assert_eq!(resolved(mode, Pending, &old, &earlier, at(EARLIER)), moved, "{mode:?} to an earlier time");
        }
    }

    #[test]
    fn a_postponement_ends_at_its_limit_and_never_goes_back_because_of_it() {
        let (limit, beyond) = (Timestamp::from_micros(1_500), LATER);
        for (due, limit, wanted, expected) in [
            (DUE, None, beyond, beyond),
            (DUE, Some(limit), limit, limit),
            (DUE, Some(limit), beyond, limit),
            // It was registered for a time beyond the limit.
            (beyond, Some(limit), Timestamp::MAX, beyond),
            (limit, Some(limit), beyond, limit),
            // A shorter delay is what its client wants.
            (beyond, Some(limit), EARLIER, EARLIER),
        ] {
            let times = Times { due, postponed_until_max: limit, expiry: None, wanted };
            assert_eq!(times.postponed(), expected, "{times:?}");
        }
    }
    #[test]
    fn an_id_that_a_client_chose_stands_for_one_content_also_during_the_call() {
        let times = Times { due: DUE, postponed_until_max: None, expiry: None, wanted: DUE };
        let asked = Some(RequestedTime::At(DUE));
        let old = Content { fingerprint: Fingerprint([0; 16]), asked, is_event: false, is_keyed: false };
        let other = Content { fingerprint: Fingerprint([1; 16]), ..old.clone() };
        assert_eq!(resolved(OnConflict::Reject, Status::Executing, &old, &old, times), Resolution::Existing);
        assert_eq!(resolved(OnConflict::Reject, Status::Executing, &old, &other, times), Resolution::Conflict);
    }

    #[test]
    fn a_timer_takes_no_time_at_which_it_has_expired() {
        use OnConflict::{Earliest, Keep, Latest, Postpone};
        use Resolution::{Existing, Move, PastExpiry};
        let content =
            Content { fingerprint: Fingerprint([0; 16]), asked: Some(RequestedTime::At(DUE)), is_event: false, is_keyed: true };
        let between = Timestamp::from_micros(1_500);
        let (at, after) = (Some(Expiry::At(LATER)), Some(Expiry::After(crate::Span::from_micros(1))));
        // Mode, the limit of postponements, the expiry, the wanted time.
        for (mode, limit, expiry, wanted, expected) in [
            (Keep, None, at, between, Move(between)),
            (Keep, None, at, LATER, PastExpiry),
            (Keep, None, after, LATER, Move(LATER)),
            (Postpone, None, at, LATER, PastExpiry),
            (Postpone, Some(between), at, LATER, Move(between)),
            (Postpone, None, after, LATER, Move(LATER)),
            (Latest, None, at, LATER, PastExpiry),
            (Latest, None, at, EARLIER, Existing),
            (Earliest, None, at, LATER, Existing),
            (Earliest, None, at, EARLIER, Move(EARLIER)),
        ] {
            let times = Times { due: DUE, postponed_until_max: limit, expiry, wanted };
            assert_eq!(resolved(mode, Status::Pending, &content, &content, times), expected, "{mode:?} {times:?}");
        }
    }
}
