use std::fmt;

use domain::{Invalid, Status, Timer, Timestamp};
use store::StoreError;

use crate::OPERATIONS_RUNNING_MAX;

/// Why a command was not carried out. The text is fit for the client; the causes inside are for the log.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("timer not found")]
    NotFound,
    #[error("key not found")]
    NoSuchKey,
    #[error("operation not found")]
    NoSuchOperation,
    /// The caller's API key does not permit it.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The status of the timer does not permit it.
    #[error("cannot {verb} timer with status '{status}'")]
    WrongStatus { verb: Verb, status: Status },
    /// The expiry of the timer has come, so that it would end without a call.
    #[error("cannot {verb} timer: it expired at {at}")]
    Expired { verb: Verb, at: Timestamp },
    /// The timer has another revision than the one that the caller expects; nothing was changed.
    #[error("timer has revision {revision}, not {expected}")]
    StaleRevision { revision: u32, expected: u32 },
    /// The key is taken, and the caller did not ask to replace its timer.
    #[error("a timer with this key exists and has other content")]
    Conflict(Box<Timer>),
    /// The id is taken by a timer with other content, perhaps one that the caller may not know of.
    #[error("a timer with this id exists and has other content")]
    IdTaken,
    /// The key belongs to a timer that is being delivered at this moment.
    #[error("the timer with this key is being delivered: try again when it has ended")]
    InDelivery(Box<Timer>),
    /// A bulk request matches more than its caller expects; nothing was changed.
    #[error("more than {expected_max} timers match, and none was changed: raise expected_max if all of them are meant")]
    TooMany { expected_max: usize },
    /// Another bulk request of the same key is still searching; nothing was changed.
    #[error("another bulk request with this key is running, and nothing was changed: try again when it has ended")]
    Searching,
    /// The searches of this key take so long that one more would wait for too long.
    #[error("too many searches of this key are waiting: try again when some have ended")]
    TooManySearches,
    /// The maximum number of event streams is open: those of this key, or all of them.
    #[error("{0}: close one, or try again later")]
    TooManyStreams(&'static str),
    /// The maximum number of operations of this key is running; nothing was changed.
    #[error(
        "no more than {max} operations of one key may run at the same time, and nothing was changed: try again when one of them has ended",
        max = OPERATIONS_RUNNING_MAX
    )]
    TooManyOperations,
    /// The store could not do it; nothing was changed.
    #[error("the store is not available and nothing was changed: try again later")]
    Unavailable(#[source] StoreError),
    /// The store may have done it, and could not be asked.
    #[error(
        "the store did not answer, so the outcome is unknown: read the timer before trying again (repeating with the same key or id is safe)"
    )]
    Unknown(#[source] StoreError),
    #[error("internal error")]
    Internal(#[source] StoreError),
}

impl CommandError {
    /// Refuses a change of a timer that has another revision than the one that its caller expects, if it expects one.
    pub fn check_revision(timer: &Timer, expected: Option<u32>) -> Result<(), Self> {
        match expected {
            Some(expected) if timer.revision != expected => Err(Self::StaleRevision { revision: timer.revision, expected }),
            _ => Ok(()),
        }
    }
}

/// The action that was requested of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Update,
    Cancel,
    Fire,
    Retry,
    Pause,
    Ping,
    Resume,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Update => "update",
            Self::Cancel => "cancel",
            Self::Fire => "fire",
            Self::Retry => "retry",
            Self::Ping => "ping",
            Self::Pause => "pause",
            Self::Resume => "resume",
        })
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Full(_) => Self::Unavailable(error),
            StoreError::Unknown(_) => Self::Unknown(error),
            StoreError::Corrupt(_) => Self::Internal(error),
        }
    }
}
