//! Changing many timers at once: what is asked, and the one decision about each of them that every store makes alike.

use domain::{Event, Expiry, Missed, Options, Status, TimerId, Timestamp};

use crate::{DueEntry, MISSED_WHILE_PAUSED};

/// Why a timer has expired that its client let expire.
pub const EXPIRED_BY_CLIENT: &str = "expired by a client";

/// Whether the claim of a timer with this last error ends it as expired, without a call: see [`BulkStep::LetExpire`].
pub fn is_let_expire(last_error: &str) -> bool {
    last_error == EXPIRED_BY_CLIENT || last_error == MISSED_WHILE_PAUSED
}

/// What a bulk change does to each of its timers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkAction {
    /// Pending and paused ones.
    Cancel,
    /// Pending ones are due at `now`, a new due time, unless their expiry has come by then.
    Fire,
    /// Failed and expired ones are tried again at `now`, unless their expiry has come by then; their due time stays.
    Retry,
    /// Pending and paused ones take the due time of their item, unless their expiry is no later; attempts start over.
    Reschedule,
    /// Pending ones.
    Pause { note: Option<String> },
    /// Paused ones.
    Resume { missed: Missed },
    /// Pending and paused ones end as expired, those with an `on_failure` by a claim.
    Expire,
    /// Finished ones are removed.
    Delete,
}

/// One timer of a bulk change, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkItem {
    pub id: TimerId,
    /// It is changed only while it has this revision: whatever changed it since has won.
    pub revision: u32,
    /// And only while it has this status: a claim, an end and a cancel leave the revision as it is, and what was read may not match any more.
    pub status: Status,
    /// Its new due time, where the action asks for one.
    pub at: Option<Timestamp>,
}

impl BulkItem {
    /// A timer that stands so, without a new due time.
    pub const fn of(id: TimerId, read: &Standing) -> Self {
        Self { id, revision: read.revision, status: read.status, at: None }
    }
}

/// What became of one timer of a bulk change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkChange {
    /// It has another revision or status than when it was read, its status or its expiry does not allow it, or it is not there.
    Skipped,
    /// It would be changed, and stays as it is because its options, which decide about that, cannot be read.
    Unreadable,
    Changed,
    /// It is changed, and its next attempt is due.
    Due(DueEntry),
}

impl BulkChange {
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Skipped | Self::Unreadable)
    }
}

/// How many timers of a bulk change were changed, and why the others were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkCounts {
    pub changed: u64,
    pub skipped: u64,
    pub unreadable: u64,
}

impl BulkCounts {
    pub fn of(changes: &[BulkChange]) -> Self {
        let mut counts = Self::default();
        for change in changes {
            match change {
                BulkChange::Skipped => counts.skipped += 1,
                BulkChange::Unreadable => counts.unreadable += 1,
                BulkChange::Changed | BulkChange::Due(_) => counts.changed += 1,
            }
        }
        counts
    }
}

/// A timer as a bulk change meets it, in the transaction that changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub revision: u32,
    /// When its next attempt is due, if there is one.
    pub at: Option<Timestamp>,
    /// Its due time, whatever its next attempt waits for.
    pub execute_at: Timestamp,
    /// What its options say, where the action [asks for it](BulkAction::asks_for_terms); `None` when they cannot be read.
    pub terms: Option<Terms>,
}

impl Standing {
    /// Whether a call can follow from this new due time. An expiry that counts from the due time moves with it.
    fn can_be_due_at(&self, to: Timestamp) -> bool {
        self.terms.is_some_and(|terms| terms.expiry.is_none_or(|expiry| expiry.instant(to) > to))
    }

    /// Whether an attempt at this time comes before the expiry.
    fn can_be_tried_at(&self, at: Timestamp) -> bool {
        self.terms.is_some_and(|terms| terms.expiry.is_none_or(|expiry| expiry.instant(self.execute_at) > at))
    }
}

/// What the options of a timer say that decides about a bulk change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    pub expiry: Option<Expiry>,
    /// Whether its `on_failure` is called when it has expired.
    pub tells_failure: bool,
}

impl Terms {
    /// The terms in the column `options` of a definition; `None` when it cannot be read.
    pub fn in_column(options: Option<&str>) -> Option<Self> {
        Options::from_stored(options).ok().map(|(options, _)| Self::of(&options))
    }

    pub const fn of(options: &Options) -> Self {
        Self { expiry: options.expiry, tells_failure: options.on_failure.is_some() }
    }
}

/// What is to be done with one timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkStep {
    /// It ends in this status. Without an error the last one stays. The revision stays.
    End {
        status: Status,
        error: Option<&'static str>,
    },
    /// It is pending and its next attempt is due at this time, with this as its last error: the claim that takes it ends it as expired,
    /// after the timer is registered that calls its `on_failure`. Its own due time and its attempts stay.
    LetExpire {
        at: Timestamp,
        error: &'static str,
    },
    /// It takes a new due time, and stays pending or paused. Attempts start over.
    Move {
        to: Timestamp,
    },
    Pause,
    /// Its next attempt is due then.
    Resume {
        at: Timestamp,
    },
    /// It is pending again, and its next attempt is due at this time. Its own due time stays.
    Reopen {
        at: Timestamp,
    },
    Remove,
}

impl BulkAction {
    /// The table of bulk changes: what an action does to a timer, or `None` when it is skipped.
    pub fn step(&self, item: &BulkItem, met: &Standing, now: Timestamp) -> Option<BulkStep> {
        if (met.revision, met.status) != (item.revision, item.status) {
            return None;
        }
        match self {
            Self::Cancel => met.status.after(Event::Cancel).map(|status| BulkStep::End { status, error: None }),
            // What is being delivered is left to its claimer.
            Self::Expire if met.status == Status::Executing => None,
            Self::Expire => met.status.after(Event::Expire).map(|_| expire(EXPIRED_BY_CLIENT, met.terms, now)),
            Self::Fire => (met.status == Status::Pending && met.can_be_due_at(now)).then_some(BulkStep::Move { to: now }),
            Self::Reschedule => {
                let to = item.at.filter(|to| met.status.after(Event::Update).is_some() && met.can_be_due_at(*to))?;
                Some(BulkStep::Move { to })
            }
            Self::Pause { .. } => met.status.after(Event::Pause).map(|_| BulkStep::Pause),
            Self::Resume { missed } => {
                let at = met.at.filter(|_| met.status.after(Event::Resume).is_some())?;
                Some(resume(at, *missed, met.terms, now))
            }
            Self::Retry => {
                let at = item.at.map_or(now, |at| at.max(now));
                (met.status.after(Event::Reopen).is_some() && met.can_be_tried_at(at)).then_some(BulkStep::Reopen { at })
            }
            Self::Delete => met.status.is_finished().then_some(BulkStep::Remove),
        }
    }

    /// What became of a timer for which there is no step.
    pub fn passed_by(&self, item: &BulkItem, met: &Standing, now: Timestamp) -> BulkChange {
        let readable = Standing { terms: Some(Terms::default()), ..*met };
        let only_terms_are_missing = self.asks_for_terms() && met.terms.is_none() && self.step(item, &readable, now).is_some();
        if only_terms_are_missing { BulkChange::Unreadable } else { BulkChange::Skipped }
    }

    /// Whether the terms of a timer take part in what the action does to it.
    pub const fn asks_for_terms(&self) -> bool {
        matches!(self, Self::Fire | Self::Retry | Self::Reschedule | Self::Expire | Self::Resume { missed: Missed::Expire })
    }

    /// What is noted about those that are paused.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Pause { note } => note.as_deref(),
            _ => None,
        }
    }
}

/// How a timer expires for this reason. An end that is told to its `on_failure` is left to a claim, which registers the timer that tells it
/// before the end is recorded: a crash in between loses nothing, and what was not ended is not told.
fn expire(error: &'static str, terms: Option<Terms>, now: Timestamp) -> BulkStep {
    if terms.is_some_and(|terms| terms.tells_failure) {
        BulkStep::LetExpire { at: now, error }
    } else {
        BulkStep::End { status: Status::Expired, error: Some(error) }
    }
}

/// How the pause of a timer ends whose next attempt is due at `at`. Its terms are asked for only where what was missed expires.
pub fn resume(at: Timestamp, missed: Missed, terms: Option<Terms>, now: Timestamp) -> BulkStep {
    if at <= now && missed == Missed::Expire {
        expire(MISSED_WHILE_PAUSED, terms, now)
    } else {
        BulkStep::Resume { at: at.max(now) }
    }
}

#[cfg(test)]
mod tests {
    use domain::Span;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    #[test]
    fn the_table_of_bulk_changes() {
        use BulkAction::{Cancel, Delete, Expire, Fire, Pause, Reschedule, Resume, Retry};
        use BulkStep::{End, Move, Remove, Reopen};
        use Status::{Canceled, Completed, Executing, Expired, Failed, Paused, Pending};
        let (earlier, later) = (NOW.saturating_sub(Span::from_secs(9)), NOW.saturating_add(Span::from_secs(9)));
        let ended = |status, error| Some(End { status, error });
        let fire = Resume { missed: Missed::Fire };
        let expire = Resume { missed: Missed::Expire };
        let table = [
            (Cancel, vec![(Pending, ended(Canceled, None)), (Paused, ended(Canceled, None))]),
            (Expire, vec![(Pending, ended(Expired, Some(EXPIRED_BY_CLIENT))), (Paused, ended(Expired, Some(EXPIRED_BY_CLIENT)))]),
            (Fire, vec![(Pending, Some(Move { to: NOW }))]),
            (Reschedule, vec![(Pending, Some(Move { to: later })), (Paused, Some(Move { to: later }))]),
            (Pause { note: None }, vec![(Pending, Some(BulkStep::Pause))]),
            (fire, vec![(Paused, Some(BulkStep::Resume { at: NOW }))]),
            (expire, vec![(Paused, ended(Expired, Some(MISSED_WHILE_PAUSED)))]),
            (Retry, vec![(Failed, Some(Reopen { at: later })), (Expired, Some(Reopen { at: later }))]),
            (Delete, [Completed, Failed, Canceled, Expired].map(|status| (status, Some(Remove))).to_vec()),
        ];
        let item = |status| BulkItem { id: TimerId::random(NOW), revision: 3, status, at: Some(later) };
        for (action, steps) in table {
            for status in Status::ALL {
                let item = item(status);
                let at = (!status.is_finished()).then_some(earlier);
                let met = Standing { status, revision: 3, at, execute_at: earlier, terms: Some(Terms::default()) };
                let expected = steps.iter().find(|(of, _)| *of == status).and_then(|(_, step)| *step);
                assert_eq!(action.step(&item, &met, NOW), expected, "{action:?} {status}");
                let changed = Standing { revision: 4, ..met };
                assert_eq!(action.step(&item, &changed, NOW), None, "{action:?} {status} changed since");
                for then in Status::ALL.into_iter().filter(|then| *then != status) {
                    let read = BulkItem { status: then, ..item };
                    assert_eq!(action.step(&read, &met, NOW), None, "{action:?} {status}, {then} when it was read");
                }
            }
        }
        let failed = Standing { status: Failed, revision: 3, at: None, execute_at: earlier, terms: Some(Terms::default()) };
        for at in [None, Some(earlier)] {
            assert_eq!(Retry.step(&BulkItem { at, ..item(Failed) }, &failed, NOW), Some(Reopen { at: NOW }), "not before now");
        }
        assert_eq!(resume(later, Missed::Expire, None, NOW), BulkStep::Resume { at: later });
        assert!(matches!(Executing.after(Event::Expire), Some(Expired)), "only bulk changes leave it to its claimer");
    }

    #[test]
    fn no_bulk_change_makes_due_what_would_expire_without_a_call() {
        use BulkAction::{Fire, Reschedule, Retry};
        use Status::{Failed, Paused, Pending};
        let second = |n| NOW.saturating_add(Span::from_secs(n));
        let (fired, moved) = (BulkStep::Move { to: NOW }, BulkStep::Move { to: second(20) });
        let reopened = BulkStep::Reopen { at: second(20) };
        // Due at the tenth second: each action, the status it concerns, and what it does to each expiry.
        for (expiry, fire, reschedule, retry) in [
            (Expiry::At(NOW), None, None, None),
            (Expiry::At(second(20)), Some(fired), None, None),
            (Expiry::At(second(21)), Some(fired), Some(moved), Some(reopened)),
            (Expiry::After(Span::from_secs(10)), Some(fired), Some(moved), None),
            (Expiry::After(Span::from_secs(11)), Some(fired), Some(moved), Some(reopened)),
        ] {
            for (action, status, expected) in [
                (Fire, Pending, fire),
                (Reschedule, Pending, reschedule),
                (Reschedule, Paused, reschedule),
                (Retry, Failed, retry),
            ] {
                let item = BulkItem { id: TimerId::random(NOW), revision: 3, status, at: Some(second(20)) };
                let terms = Some(Terms { expiry: Some(expiry), ..Terms::default() });
                let met = Standing { status, revision: 3, at: Some(second(10)), execute_at: second(10), terms };
                assert_eq!(action.step(&item, &met, NOW), expected, "{action:?} {status} {expiry:?}");
                assert_eq!(action.passed_by(&item, &met, NOW), BulkChange::Skipped);
                let unreadable = Standing { terms: None, ..met };
                assert_eq!(action.step(&item, &unreadable, NOW), None, "{action:?} {status}: its expiry is not known");
                assert_eq!(action.passed_by(&item, &unreadable, NOW), BulkChange::Unreadable, "{action:?} {status}");
                let changed = Standing { revision: 4, ..unreadable };
                assert_eq!(action.passed_by(&item, &changed, NOW), BulkChange::Skipped, "{action:?} {status} changed since");
            }
        }
    }

    #[test]
    fn an_end_that_is_told_is_left_to_a_claim() {
        let told = Some(Terms { tells_failure: true, ..Terms::default() });
        let resumed = BulkAction::Resume { missed: Missed::Expire };
        for (action, status, error) in [
            (BulkAction::Expire, Status::Pending, EXPIRED_BY_CLIENT),
            (BulkAction::Expire, Status::Paused, EXPIRED_BY_CLIENT),
            (resumed, Status::Paused, MISSED_WHILE_PAUSED),
        ] {
            assert!(action.asks_for_terms());
            let item = BulkItem { id: TimerId::random(NOW), revision: 3, status, at: None };
            let met = Standing { status, revision: 3, at: Some(NOW), execute_at: NOW, terms: told };
            assert_eq!(action.step(&item, &met, NOW), Some(BulkStep::LetExpire { at: NOW, error }), "{action:?} {status}");
            assert!(is_let_expire(error));
            // What cannot be read has no callback that could be registered.
            let unreadable = Standing { terms: None, ..met };
            let ended = BulkStep::End { status: Status::Expired, error: Some(error) };
            assert_eq!(action.step(&item, &unreadable, NOW), Some(ended), "{action:?} {status}");
        }
        assert!(!is_let_expire("HTTP 503"));
    }
}
