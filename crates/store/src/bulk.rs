//! Changing many timers at once: what is asked, and the one decision about each of them that every store makes alike.

use domain::{Event, Missed, Status, TimerId, Timestamp};

use crate::{DueEntry, MISSED_WHILE_PAUSED};

/// Why a timer has expired that its client let expire.
pub const EXPIRED_BY_CLIENT: &str = "expired by a client";

/// What a bulk change does to each of its timers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkAction {
    /// Pending and paused ones.
    Cancel,
    /// Pending ones are due at `now`, a new due time.
    Fire,
    /// Failed and expired ones are tried again at `now`; their due time stays.
    Retry,
    /// Pending and paused ones take the due time of their item; attempts start over.
    Reschedule,
    /// Pending ones.
    Pause { note: Option<String> },
    /// Paused ones.
    Resume { missed: Missed },
    /// Pending and paused ones end as expired.
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
    /// Its new due time, where the action asks for one.
    pub at: Option<Timestamp>,
}

/// What became of one timer of a bulk change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkChange {
    /// It has another revision, its status does not allow it, or it is not there.
    Skipped,
    Changed,
    /// It is changed, and its next attempt is due.
    Due(DueEntry),
}

impl BulkChange {
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Skipped)
    }
}

/// A timer as a bulk change meets it, in the transaction that changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub revision: u32,
    /// When its next attempt is due, if there is one.
    pub at: Option<Timestamp>,
}

/// What is to be done with one timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkStep {
    /// It ends in this status. Without an error the last one stays. The revision stays.
    End {
        status: Status,
        error: Option<&'static str>,
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
        if met.revision != item.revision {
            return None;
        }
        match self {
            Self::Cancel => met.status.after(Event::Cancel).map(|status| BulkStep::End { status, error: None }),
            // What is being delivered is left to its claimer.
            Self::Expire if met.status == Status::Executing => None,
            Self::Expire => {
                met.status.after(Event::Expire).map(|status| BulkStep::End { status, error: Some(EXPIRED_BY_CLIENT) })
            }
            Self::Fire => (met.status == Status::Pending).then_some(BulkStep::Move { to: now }),
            Self::Reschedule => {
                let to = item.at.filter(|_| met.status.after(Event::Update).is_some())?;
                Some(BulkStep::Move { to })
            }
            Self::Pause { .. } => met.status.after(Event::Pause).map(|_| BulkStep::Pause),
            Self::Resume { missed } => {
                let at = met.at.filter(|_| met.status.after(Event::Resume).is_some())?;
                Some(resume(at, *missed, now))
            }
            Self::Retry => {
                met.status.after(Event::Reopen).map(|_| BulkStep::Reopen { at: item.at.map_or(now, |at| at.max(now)) })
            }
            Self::Delete => met.status.is_finished().then_some(BulkStep::Remove),
        }
    }

    /// What is noted about those that are paused.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Pause { note } => note.as_deref(),
            _ => None,
        }
    }
}

/// How the pause of a timer ends whose next attempt is due at `at`.
pub fn resume(at: Timestamp, missed: Missed, now: Timestamp) -> BulkStep {
    if at <= now && missed == Missed::Expire {
        BulkStep::End { status: Status::Expired, error: Some(MISSED_WHILE_PAUSED) }
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
        let item = BulkItem { id: TimerId::random(NOW), revision: 3, at: Some(later) };
        for (action, steps) in table {
            for status in Status::ALL {
                let met = Standing { status, revision: 3, at: (!status.is_finished()).then_some(earlier) };
                let expected = steps.iter().find(|(of, _)| *of == status).and_then(|(_, step)| *step);
                assert_eq!(action.step(&item, &met, NOW), expected, "{action:?} {status}");
                let changed = Standing { revision: 4, ..met };
                assert_eq!(action.step(&item, &changed, NOW), None, "{action:?} {status} changed since");
            }
        }
        let failed = Standing { status: Failed, revision: 3, at: None };
        for at in [None, Some(earlier)] {
            assert_eq!(Retry.step(&BulkItem { at, ..item }, &failed, NOW), Some(Reopen { at: NOW }), "not before now");
        }
        assert_eq!(resume(later, Missed::Expire, NOW), BulkStep::Resume { at: later });
        assert!(matches!(Executing.after(Event::Expire), Some(Expired)), "only bulk changes leave it to its claimer");
    }
}
