use std::collections::HashSet;

use domain::Timestamp;

/// What this process has read of the nudges.
#[derive(Debug, Default)]
pub struct NudgeInbox {
    /// From when on it listens; `None` before the first look.
    pub since: Option<Timestamp>,
    pub read: HashSet<Vec<u8>>,
}
