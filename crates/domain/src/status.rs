use std::fmt;

use crate::Timestamp;

/// The status of a timer.
///
/// ```text
///            claim               complete
///  pending ─────────▶ executing ──────────▶ completed
///   │   ▲ ▲               │  ├──────────────▶ failed ────┐
///   │   │ │               │  │     fail                   │
///   │   │ │               │  └──────────────▶ expired ───┤
///   │   │ └───────────────┘       expire                  │
///   │   │  retry, again           reopen                  │
///   │   └─────────────────────────────────────────────────┘
///   ├─────────▶ canceled, expired ◀────────┐
///   │ cancel, expire                       │ cancel, expire
///   │      pause                           │
///   └──────────────▶ paused ───────────────┘
///     ◀──────────────┘
///          resume
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Where a timer stands. `pending` → `executing` → `completed`, `failed` or `expired`; `pending` → `canceled`; a retry goes back to `pending`. Its client can take it to `paused` and back."
)]
pub enum Status {
    Pending,
    Executing,
    Completed,
    Failed,
    Canceled,
    /// Out of what is due until its client resumes it.
    Paused,
    /// It was not called, or not called again, because its expiry had come.
    Expired,
}

/// The transitions of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A node claims the timer to deliver it.
    Claim,
    /// The client changes the timer.
    Update,
    Cancel,
    /// The delivery ended for good.
    Complete,
    Fail,
    /// The timer has reached its expiry before a delivery went well.
    Expire,
    /// The timer is to be delivered again, for the same due time or for a new one.
    Retry,
    /// The client registers the timer anew after it had ended.
    Revive,
    /// The client wants a failed or expired timer tried again.
    Reopen,
    /// The client takes the timer out of what is due, and puts it back.
    Pause,
    Resume,
}

impl Status {
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Executing, Self::Completed, Self::Failed, Self::Canceled, Self::Paused, Self::Expired];

    /// The only way a status changes: the status after `event`, or `None` when the transition is not allowed.
    pub const fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Pending, Event::Claim) => Some(Self::Executing),
            (Self::Pending, Event::Update) => Some(Self::Pending),
            (Self::Paused, Event::Update) => Some(Self::Paused),
            (Self::Pending | Self::Paused, Event::Cancel) => Some(Self::Canceled),
            (Self::Pending, Event::Pause) => Some(Self::Paused),
            (Self::Paused, Event::Resume) => Some(Self::Pending),
            (Self::Pending | Self::Paused | Self::Executing, Event::Expire) => Some(Self::Expired),
            (Self::Executing, Event::Complete) => Some(Self::Completed),
            (Self::Executing, Event::Fail) => Some(Self::Failed),
            (Self::Executing, Event::Retry) => Some(Self::Pending),
            (Self::Completed | Self::Failed | Self::Canceled | Self::Expired, Event::Revive) => Some(Self::Pending),
            (Self::Failed | Self::Expired, Event::Reopen) => Some(Self::Pending),
            _ => None,
        }
    }

    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Expired)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Paused => "paused",
            Self::Expired => "expired",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What follows for a claimed timer once its attempt has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Completed {
        at: Timestamp,
    },
    Failed {
        at: Timestamp,
        error: String,
    },
    /// Failed without a call: the attempt that the claim counted was not started, and no longer counts.
    GivenUp {
        at: Timestamp,
        error: String,
    },
    /// Ended by its expiry. Where no call was made, the attempt that the claim counted does not count.
    Expired {
        at: Timestamp,
        error: String,
        is_called: bool,
    },
    /// Pending again for the same due time, to be tried at `at`; `attempt` attempts count as started.
    Pending {
        at: Timestamp,
        attempt: u32,
        error: Option<String>,
    },
    /// Pending again for a new due time: attempts start over.
    Again {
        at: Timestamp,
    },
}

impl Next {
    pub const fn event(&self) -> Event {
        match self {
            Self::Completed { .. } => Event::Complete,
            Self::Failed { .. } | Self::GivenUp { .. } => Event::Fail,
            Self::Expired { .. } => Event::Expire,
            Self::Pending { .. } | Self::Again { .. } => Event::Retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_changes_only_along_the_arrows() {
        use Event::{Cancel, Claim, Complete, Expire, Fail, Pause, Reopen, Resume, Retry, Revive, Update};
        use Status::{Canceled, Completed, Executing, Expired, Failed, Paused, Pending};
        let arrows = [
            (Pending, Claim, Executing),
            (Pending, Update, Pending),
            (Pending, Cancel, Canceled),
            (Pending, Pause, Paused),
            (Pending, Expire, Expired),
            (Paused, Resume, Pending),
            (Paused, Update, Paused),
            (Paused, Cancel, Canceled),
            (Paused, Expire, Expired),
            (Executing, Complete, Completed),
            (Executing, Fail, Failed),
            (Executing, Expire, Expired),
            (Executing, Retry, Pending),
            (Completed, Revive, Pending),
            (Failed, Revive, Pending),
            (Canceled, Revive, Pending),
            (Expired, Revive, Pending),
            (Failed, Reopen, Pending),
            (Expired, Reopen, Pending),
        ];
        for status in Status::ALL {
            for event in [Claim, Update, Cancel, Complete, Fail, Expire, Retry, Revive, Reopen, Pause, Resume] {
                let arrow = arrows.iter().find(|(from, by, _)| (*from, *by) == (status, event)).map(|arrow| arrow.2);
                assert_eq!(status.after(event), arrow, "{status} {event:?}");
            }
        }
    }

    #[test]
    fn a_status_reads_back_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("Pending"), None);
    }
}
