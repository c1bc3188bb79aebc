//! What happened to timers, as a store has recorded it.
//!
//! ```text
//!   definition, by created_at ──┐
//!   outcome, by finished_at ────┼──▶ one line of events, by their positions
//!   journal, by the moment of ──┘
//!   the write: changes, attempts, and what the other two would show too late
//! ```
//!
//! A position is a moment of the database's clock, or one that lies within [`PROMPT_WITHIN`] of it. Commits become visible
//! later than the moments that they name, and not in their order: up to where nothing can come any more is told by a
//! [`Watermark`].

use domain::{Span, Status, TimerId, Timestamp};

use crate::Unreadable;

/// How far `created_at` and `finished_at`, which are taken from the clock of a node before the write, may lie from the moment of
/// the write by the database's clock. What lies further away has an entry in the journal as well.
pub const PROMPT_WITHIN: Span = Span::from_secs(2);

/// How long the entries of the journal are kept: so old a position may be that a reader resumes from.
pub const JOURNAL_KEPT: Span = Span::from_secs(24 * 60 * 60);

/// Whether a moment lies within [`PROMPT_WITHIN`] of `now`.
pub const fn is_prompt(at: Timestamp, now: Timestamp) -> bool {
    at.as_micros().abs_diff(now.as_micros()) <= PROMPT_WITHIN.as_micros().unsigned_abs()
}

/// Whether a reader may resume from that moment.
pub fn is_resumable(at: Timestamp, now: Timestamp) -> bool {
    at > now.saturating_sub(JOURNAL_KEPT)
}

/// Which writes were under way at a moment of the database's clock. Writes are numbered in the order in which they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    pub at: Timestamp,
    /// The oldest write that has not ended; `next` if there is none.
    pub open: u64,
    /// The number that the next write gets.
    pub next: u64,
}

impl Watermark {
    /// Whether all that was being written at the earlier watermark has ended by now, and so can be read.
    pub const fn is_past(&self, earlier: &Self) -> bool {
        self.open >= earlier.next
    }
}

/// One thing that happened to a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recorded {
    pub position: Timestamp,
    pub id: TimerId,
    pub what: Happened,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happened {
    Created {
        at: Timestamp,
    },
    /// The definition or the due time was changed; the timer took this revision.
    Changed {
        revision: u32,
    },
    /// An attempt was recorded: see [`EventStore::attempts_at`](crate::EventStore::attempts_at).
    Attempted {
        seq: i64,
    },
    Finished {
        at: Timestamp,
        status: Status,
    },
    /// The timer had finished then, and has a new life since: its end is stored no more. For readers that have not seen the end
    /// itself.
    Ended {
        at: Timestamp,
        status: Status,
    },
    /// The timer had been created then, and was created anew since: its first creation is stored no more. For readers that have not
    /// seen that creation itself.
    Began {
        at: Timestamp,
    },
}

/// How a line of the journal says what happened, in its column `kind`.
impl Happened {
    pub const CREATED: i16 = 1;
    pub const CHANGED: i16 = 2;
    pub const ATTEMPTED: i16 = 3;
    pub const FINISHED: i16 = 4;
    pub const ENDED: i16 = 5;
    pub const BEGAN: i16 = 6;

    pub const fn kind(&self) -> i16 {
        match self {
            Self::Created { .. } => Self::CREATED,
            Self::Changed { .. } => Self::CHANGED,
            Self::Attempted { .. } => Self::ATTEMPTED,
            Self::Finished { .. } => Self::FINISHED,
            Self::Ended { .. } => Self::ENDED,
            Self::Began { .. } => Self::BEGAN,
        }
    }

    /// The columns `moment`, `seq` and `status`.
    pub fn columns(&self) -> (Option<i64>, i64, Option<&'static str>) {
        match *self {
            Self::Created { at } | Self::Began { at } => (Some(at.as_micros()), 0, None),
            Self::Changed { revision } => (None, i64::from(revision), None),
            Self::Attempted { seq } => (None, seq, None),
            Self::Finished { at, status } | Self::Ended { at, status } => (Some(at.as_micros()), 0, Some(status.as_str())),
        }
    }

    /// When the former life began or ended that this is a record of. A reader that has read everything up to then knows it already.
    pub const fn former(&self) -> Option<Timestamp> {
        match self {
            Self::Ended { at, .. } | Self::Began { at } => Some(*at),
            _ => None,
        }
    }

    pub fn from_columns(kind: i16, moment: Option<i64>, seq: i64, status: Option<&str>) -> Result<Self, Unreadable> {
        let missing = |what: &str| Unreadable(format!("an event of kind {kind} has no {what}"));
        let at = || moment.map(Timestamp::from_micros).ok_or_else(|| missing("moment"));
        let status = || status.and_then(Status::parse).ok_or_else(|| missing("status"));
        Ok(match kind {
            Self::CREATED => Self::Created { at: at()? },
            Self::CHANGED => Self::Changed { revision: u32::try_from(seq).map_err(|_| missing("revision"))? },
            Self::ATTEMPTED => Self::Attempted { seq },
            Self::FINISHED => Self::Finished { at: at()?, status: status()? },
            Self::ENDED => Self::Ended { at: at()?, status: status()? },
            Self::BEGAN => Self::Began { at: at()? },
            _ => return Err(Unreadable(format!("events of kind {kind} are not known"))),
        })
    }
}

/// An entry as it was read: damage costs its own event, and not the rest of the page.
#[derive(Debug, Clone)]
pub enum Read {
    Event(Recorded),
    Damaged { position: Timestamp },
}

impl Read {
    /// What was read of the entry at a position. Damage is logged.
    pub fn of(position: Timestamp, read: Result<(TimerId, Happened), Unreadable>) -> Self {
        match read {
            Ok((id, what)) => Self::Event(Recorded { position, id, what }),
            Err(error) => {
                tracing::warn!(event.position = position.as_micros(), %error, "a stored event cannot be read, and is left out");
                Self::Damaged { position }
            }
        }
    }

    const fn position(&self) -> Timestamp {
        match self {
            Self::Event(Recorded { position, .. }) | Self::Damaged { position } => *position,
        }
    }

    fn event(self) -> Option<Recorded> {
        match self {
            Self::Event(recorded) => Some(recorded),
            Self::Damaged { .. } => None,
        }
    }
}

/// Events in the order of their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Recorded>,
    /// All that can be read up to here is in the page.
    pub until: Timestamp,
}

impl EventPage {
    /// Merges what was read of each source: its first events, at most `limit`, in the order of their positions. Ends where the first
    /// source has more than that. `None` if a source has so many events at one position that the page would not move on: read again
    /// with a higher limit. Entries that cannot be read are left out, but count: see [`Read`].
    pub fn merge(sources: impl IntoIterator<Item = Vec<Read>>, until: Timestamp, limit: usize) -> Option<Self> {
        let (mut events, mut end) = (Vec::new(), until);
        for source in sources {
            if let (Some(first), Some(last)) = (source.first(), source.last())
                && source.len() >= limit
            {
                let before = last.position().saturating_sub(Span::from_micros(1));
                if first.position() > before {
                    return None;
                }
                end = end.min(before);
            }
            events.extend(source.into_iter().filter_map(Read::event));
        }
        events.retain(|event| event.position <= end);
        events.sort_by_key(|event| (event.position, event.id));
        Some(Self { events, until: end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn source(positions: &[i64]) -> Vec<Read> {
        let event = |position: &i64| Read::of(at(*position), Ok((TimerId::LAST, Happened::Created { at: at(*position) })));
        positions.iter().map(event).collect()
    }

    fn positions(page: &EventPage) -> Vec<i64> {
        page.events.iter().map(|event| event.position.as_micros()).collect()
    }

    #[test]
    fn a_page_ends_where_a_source_may_have_more() {
        let page = EventPage::merge([source(&[1, 5, 9]), source(&[2, 3]), source(&[])], at(20), 4).unwrap();
        assert_eq!((positions(&page), page.until), (vec![1, 2, 3, 5, 9], at(20)));

        let page = EventPage::merge([source(&[1, 5, 9]), source(&[2, 3, 6])], at(20), 3).unwrap();
        assert_eq!((positions(&page), page.until), (vec![1, 2, 3, 5], at(5)), "of position 6 there may be more");
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_counts() {
        let damaged = |position| Read::of(at(position), Err(Unreadable("x".to_owned())));
        let page = EventPage::merge([vec![damaged(1), damaged(2), damaged(3)], source(&[2, 9])], at(20), 3).unwrap();
        assert_eq!((positions(&page), page.until), (vec![2], at(2)), "of position 3 there may be more");
    }

    #[test]
    fn a_page_that_would_not_move_on_is_none() {
        assert_eq!(EventPage::merge([source(&[7, 7, 7])], at(20), 3), None);
        assert!(EventPage::merge([source(&[7, 7, 7])], at(20), 4).is_some());
        assert!(EventPage::merge([source(&[6, 7, 7])], at(20), 3).is_some());
    }

    #[test]
    fn what_happened_reads_back_from_its_columns() {
        let (at, status) = (at(7), Status::Failed);
        for what in [
            Happened::Created { at },
            Happened::Changed { revision: 3 },
            Happened::Attempted { seq: 4 },
            Happened::Finished { at, status },
            Happened::Ended { at, status },
            Happened::Began { at },
        ] {
            let (moment, seq, status) = what.columns();
            assert_eq!(Happened::from_columns(what.kind(), moment, seq, status).unwrap(), what);
        }
        for (kind, moment, seq, status) in [
            (0, Some(1), 1, Some("failed")),
            (1, None, 1, None),
            (2, None, -1, None),
            (4, Some(1), 0, Some("x")),
            (5, None, 0, None),
            (6, None, 0, None),
            (7, Some(1), 0, None),
        ] {
            assert!(Happened::from_columns(kind, moment, seq, status).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_moment_is_prompt_on_both_sides_of_now() {
        let now = at(10_000_000);
        for (moment, prompt) in [(8_000_000, true), (7_999_999, false), (12_000_000, true), (12_000_001, false)] {
            assert_eq!(is_prompt(at(moment), now), prompt, "{moment}");
        }
    }

    #[test]
    fn a_watermark_is_past_another_when_its_writes_have_ended() {
        let mark = |open, next| Watermark { at: at(0), open, next };
        assert!(mark(5, 9).is_past(&mark(3, 5)));
        assert!(!mark(4, 9).is_past(&mark(3, 5)));
    }
}
