//! A bulk change that is carried out in the background, as it is stored.

use domain::{AccessKeyId, Span, TimerId, Timestamp};

use crate::{Cursor, Epoch, Filter};

/// The id of a bulk operation. In the order of their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub TimerId);

/// A bulk change of many timers, page by page.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkOperation {
    pub id: OperationId,
    /// The issued key that asked for it; `None` is the administrator's.
    pub key: Option<AccessKeyId>,
    /// The name of that key, for people.
    pub by: String,
    /// What is done, in the words of the commands.
    pub work: String,
    pub filter: Filter,
    pub state: OperationState,
    /// How many timers matched when it started; an estimate until it has counted them.
    pub matched: u64,
    /// It changes no more than these.
    pub expected_max: u64,
    pub changed: u64,
    pub skipped: u64,
    /// How many could not be changed because they cannot be read.
    pub errors: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// Up to where it has come.
    pub cursor: Option<Cursor>,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The fencing token of its owner: it rises each time that a node takes the operation.
    pub epoch: Epoch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    Running,
    Done,
    Stopped,
    Failed,
}

impl OperationState {
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Stopped, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// How far an operation has come with a page of its timers: written in the same commit as the changes themselves, so that each timer is
/// changed once, whatever happens to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub operation: OperationId,
    /// It counts only while the operation runs under this epoch.
    pub epoch: Epoch,
    pub cursor: Option<Cursor>,
    /// Timers before and between those of the page that cannot be read.
    pub errors: u64,
    /// How many timers match, once they are counted; until then what was known before stays.
    pub matched: Option<u64>,
    /// The time for which the operation is its owner's, from now on by the database's clock. Zero gives it back.
    pub lease: Span,
}
