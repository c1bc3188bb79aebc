use domain::{Invalid, Missed, RequestedTime, Span, Timestamp};
use store::{BulkAction, BulkItem, Summary};

use crate::{EarliestAllowed, Rules};

/// What the text of an operation begins with that has to count first. A program that does not know of it lets the operation fail.
const UNCOUNTED: &str = "uncounted ";

/// What a bulk request does to the timers that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkWork {
    Cancel,
    Fire,
    /// At once, or evenly over a time from the start of the request, in the order of their creation.
    Retry {
        over: Option<Span>,
    },
    Reschedule(Reschedule),
    Pause {
        note: Option<String>,
    },
    Resume {
        missed: Missed,
    },
    Expire,
    Delete,
}

/// The new due times of a bulk request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reschedule {
    /// The same for all of them.
    At(Timestamp),
    /// Each moves by the same time, later or earlier than it was due. A new due time that would be in the past becomes now.
    Shift(Shift),
    /// Evenly over a time from the start of the request, in the order of their creation.
    Spread(Span),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    pub by: Span,
    pub is_earlier: bool,
}

impl Shift {
    /// A duration with a sign: `+1h`, `-10m`.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let rule = || Invalid::new(field, "must be a duration with a sign such as +1h or -10m");
        let (is_earlier, text) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(rule()),
        };
        Ok(Self { by: Span::parse(field, text).map_err(|_| rule())?, is_earlier })
    }

    const fn apply(self, at: Timestamp) -> Timestamp {
        if self.is_earlier { at.saturating_sub(self.by) } else { at.saturating_add(self.by) }
    }
}

/// How the timers of one bulk request get their new due times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) started_at: Timestamp,
    pub(crate) matched: u64,
    /// No due time lies further ahead.
    pub(crate) latest: Timestamp,
}

impl BulkWork {
    pub const NAMES: [&'static str; 8] = ["cancel", "fire", "retry", "reschedule", "pause", "resume", "expire", "delete"];

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Fire => "fire",
            Self::Retry { .. } => "retry",
            Self::Reschedule(_) => "reschedule",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Expire => "expire",
            Self::Delete => "delete",
        }
    }

    /// Refuses a due time that no timer may have.
    pub(crate) fn checked(&self, rules: &Rules, now: Timestamp) -> Result<Self, Invalid> {
        Ok(match self {
            Self::Reschedule(Reschedule::At(at)) => {
                let at = rules.instant(&RequestedTime::At(*at), EarliestAllowed::MinDelay, now)?;
                Self::Reschedule(Reschedule::At(at))
            }
            Self::Reschedule(Reschedule::Spread(over)) | Self::Retry { over: Some(over) } => {
                let last = RequestedTime::At(now.saturating_add(*over));
                rules.instant(&last, EarliestAllowed::Now, now).map_err(|invalid| invalid.named("spread"))?;
                self.clone()
            }
            _ => self.clone(),
        })
    }

    pub(crate) fn action(&self) -> BulkAction {
        match self {
            Self::Cancel => BulkAction::Cancel,
            Self::Fire => BulkAction::Fire,
            Self::Retry { .. } => BulkAction::Retry,
            Self::Reschedule(_) => BulkAction::Reschedule,
            Self::Pause { note } => BulkAction::Pause { note: note.clone() },
            Self::Resume { missed } => BulkAction::Resume { missed: *missed },
            Self::Expire => BulkAction::Expire,
            Self::Delete => BulkAction::Delete,
        }
    }

    /// One timer of the request, which has this rank among all that match.
    pub(crate) fn item(&self, timer: &Summary, rank: u64, plan: &Plan, now: Timestamp) -> BulkItem {
        let at = match self {
            Self::Reschedule(Reschedule::At(at)) => Some(*at),
            Self::Reschedule(Reschedule::Shift(shift)) => Some(shift.apply(timer.execute_at).max(now).min(plan.latest.max(now))),
            Self::Reschedule(Reschedule::Spread(over)) | Self::Retry { over: Some(over) } => {
                let part = rank.min(plan.matched) as f64 / plan.matched.max(1) as f64;
                Some(plan.started_at.saturating_add(over.saturating_mul(part)))
            }
            _ => None,
        };
        BulkItem { id: timer.id, revision: timer.revision, status: timer.status, at }
    }

    /// One line of text, as an operation keeps it.
    pub(crate) fn to_text(&self) -> String {
        let name = self.name();
        match self {
            Self::Reschedule(Reschedule::At(at)) => format!("{name} at {at}"),
            Self::Reschedule(Reschedule::Shift(Shift { by, is_earlier })) => {
                format!("{name} shift {}{}us", if *is_earlier { '-' } else { '+' }, by.as_micros())
            }
            Self::Reschedule(Reschedule::Spread(over)) | Self::Retry { over: Some(over) } => {
                format!("{name} spread {}us", over.as_micros())
            }
            Self::Pause { note: Some(note) } => format!("{name} {note}"),
            Self::Resume { missed: Missed::Expire } => format!("{name} expire"),
            _ => name.to_owned(),
        }
    }

    /// The same, for an operation that has to count its timers before it changes the first of them.
    pub(crate) fn to_uncounted_text(&self) -> String {
        format!("{UNCOUNTED}{}", self.to_text())
    }

    /// Whether the timers of an operation were counted before it was started.
    pub(crate) fn is_counted(text: &str) -> bool {
        !text.starts_with(UNCOUNTED)
    }

    /// Reads the line that an operation keeps of its work.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.strip_prefix(UNCOUNTED).unwrap_or(text);
        let (name, rest) = text.split_once(' ').map_or((text, None), |(name, rest)| (name, Some(rest)));
        Some(match (name, rest) {
            ("cancel", None) => Self::Cancel,
            ("fire", None) => Self::Fire,
            ("retry", None) => Self::Retry { over: None },
            ("retry", Some(rest)) => match Reschedule::from_text(rest)? {
                Reschedule::Spread(over) => Self::Retry { over: Some(over) },
                _ => return None,
            },
            ("reschedule", Some(rest)) => Self::Reschedule(Reschedule::from_text(rest)?),
            ("pause", note) => Self::Pause { note: note.map(str::to_owned) },
            ("resume", rest) => Self::Resume { missed: Missed::parse(rest.unwrap_or("fire"))? },
            ("expire", None) => Self::Expire,
            ("delete", None) => Self::Delete,
            _ => return None,
        })
    }

    /// What an operation does, by its name.
    pub fn name_in(text: &str) -> &str {
        text.strip_prefix(UNCOUNTED).unwrap_or(text).split(' ').next().unwrap_or_default()
    }
}

impl Reschedule {
    fn from_text(text: &str) -> Option<Self> {
        let (kind, value) = text.split_once(' ')?;
        match kind {
            "at" => Timestamp::parse(kind, value).ok().map(Self::At),
            "shift" => Shift::parse(kind, value).ok().map(Self::Shift),
            "spread" => Span::parse(kind, value).ok().map(Self::Spread),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Horizon, Namespace, Status, TimerId};

    use super::*;
    use crate::rig::{NOW, rules};

    fn every_work() -> Vec<BulkWork> {
        let shift = |is_earlier| Reschedule::Shift(Shift { by: Span::from_secs(90), is_earlier });
        vec![
            BulkWork::Cancel,
            BulkWork::Fire,
            BulkWork::Retry { over: None },
            BulkWork::Retry { over: Some(Span::from_secs(600)) },
            BulkWork::Reschedule(Reschedule::At(NOW)),
            BulkWork::Reschedule(shift(true)),
            BulkWork::Reschedule(shift(false)),
            BulkWork::Reschedule(Reschedule::Spread(Span::from_secs(60))),
            BulkWork::Pause { note: None },
            BulkWork::Pause { note: Some("a note  of words".to_owned()) },
            BulkWork::Resume { missed: Missed::Fire },
            BulkWork::Resume { missed: Missed::Expire },
            BulkWork::Expire,
            BulkWork::Delete,
        ]
    }

    #[test]
    fn work_reads_back_as_it_is_written() {
        for work in every_work() {
            let text = work.to_text();
            assert_eq!(BulkWork::from_text(&text), Some(work.clone()), "{text}");
            assert_eq!(BulkWork::name_in(&text), work.name());
            assert!(BulkWork::NAMES.contains(&work.name()));
        }
        for text in ["", "cancel now", "retry at 2030-01-31T12:00:00Z", "reschedule", "reschedule at noon", "explode"] {
            assert_eq!(BulkWork::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn new_due_times_follow_the_request() {
        let seconds = |seconds: u32| NOW.saturating_add(Span::from_secs(seconds));
        let timer = |execute_at| Summary {
            id: TimerId::random(NOW),
            namespace: Namespace::default(),
            key: None,
            group: None,
            callback_kind: "http".to_owned(),
            correlation_id: None,
            execute_at,
            status: Status::Pending,
            attempt: 0,
            last_error: None,
            executed_at: None,
            created_at: NOW,
            updated_at: NOW,
            revision: 7,
        };
        let plan = Plan { started_at: NOW, matched: 4, latest: seconds(1000) };
        let shift = |text| BulkWork::Reschedule(Reschedule::Shift(Shift::parse("shift", text).unwrap()));
        let spread = BulkWork::Reschedule(Reschedule::Spread(Span::from_secs(100)));
        for (work, execute_at, rank, expected) in [
            (BulkWork::Reschedule(Reschedule::At(seconds(5))), seconds(1), 0, Some(seconds(5))),
            (shift("+10s"), seconds(1), 0, Some(seconds(11))),
            (shift("-10s"), seconds(30), 0, Some(seconds(20))),
            (shift("-1h"), seconds(30), 0, Some(NOW)),
            (shift("+1h"), seconds(30), 0, Some(seconds(1000))),
            (spread.clone(), seconds(30), 0, Some(NOW)),
            (spread.clone(), seconds(30), 1, Some(seconds(25))),
            (spread, seconds(30), 9, Some(seconds(100))),
            (BulkWork::Cancel, seconds(30), 0, None),
        ] {
            let item = work.item(&timer(execute_at), rank, &plan, NOW);
            assert_eq!((item.at, item.revision, item.status), (expected, 7, Status::Pending), "{work:?} {rank}");
        }
    }

    #[test]
    fn a_shift_has_a_sign() {
        for text in ["1h", "", "+", "-x", "+-1h", " +1h"] {
            let refusal = Shift::parse("set.shift", text).unwrap_err().to_string();
            assert_eq!(refusal, "set.shift must be a duration with a sign such as +1h or -10m", "{text}");
        }
    }

    #[test]
    fn a_due_time_that_no_timer_may_have_is_refused() {
        let past = BulkWork::Reschedule(Reschedule::At(NOW.saturating_sub(Span::from_secs(3600))));
        assert_eq!(past.checked(&rules(), NOW).unwrap_err().to_string(), "execute_at must be in the future");
        let horizon = Horizon { max_horizon: Some(Span::from_secs(60)), ..rules().horizon };
        let over = Span::from_secs(61);
        for work in [BulkWork::Reschedule(Reschedule::Spread(over)), BulkWork::Retry { over: Some(over) }] {
            let refusal = work.checked(&Rules { horizon, ..rules() }, NOW).unwrap_err().to_string();
            assert_eq!(refusal, "spread must not be more than 1m ahead", "{work:?}");
        }
    }
}
