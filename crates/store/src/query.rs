use std::collections::BTreeMap;

use domain::{CorrelationId, Group, Key, Namespace, Status, TimerId, Timestamp};

/// Which timers are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub namespace: Option<Namespace>,
    /// The caller's own key begins with this; timers without a key do not match.
    pub key_prefix: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    pub filter: Filter,
    pub sort: Sort,
    pub order: Order,
    pub limit: u32,
    /// How many matching timers to pass over, counted from the cursor or the beginning.
    pub offset: u64,
    pub after: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    CreatedAt,
    ExecuteAt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    Ascending,
    #[default]
    Descending,
}

/// The last timer of a page: its time in the order of the list, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub at: Timestamp,
    pub id: TimerId,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    pub timers: Vec<Summary>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<Cursor>,
}

/// Up to so many timers are counted one by one.
pub const COUNTED_MAX: u64 = 100_000;

/// How many timers there are of a kind. Many are not counted anew for every client: past [`COUNTED_MAX`] the number may be
/// an estimate, and says so. An estimate is never below that limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub timers: u64,
    pub is_estimate: bool,
}

impl Count {
    pub const fn exactly(timers: u64) -> Self {
        Self { timers, is_estimate: false }
    }

    pub fn about(timers: u64) -> Self {
        Self { timers: timers.max(COUNTED_MAX), is_estimate: true }
    }
}

/// An estimate is no number that one could rely on.
impl PartialEq<u64> for Count {
    fn eq(&self, timers: &u64) -> bool {
        *self == Self::exactly(*timers)
    }
}

/// How many timers of a group there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupCount {
    /// For each status that at least one of them has.
    pub by_status: BTreeMap<Status, u64>,
    /// There are more than [`COUNTED_MAX`], and only so many were counted.
    pub is_capped: bool,
}

impl GroupCount {
    pub fn timers(&self) -> u64 {
        self.by_status.values().sum()
    }
}

/// A timer without what can be large.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub id: TimerId,
    pub namespace: Namespace,
    pub key: Option<Key>,
    pub group: Option<Group>,
    pub callback_kind: String,
    pub correlation_id: Option<CorrelationId>,
    pub execute_at: Timestamp,
    pub status: Status,
    pub attempt: u32,
    pub last_error: Option<String>,
    pub executed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Summary {
    /// Where this timer stands in a list of that order.
    pub const fn cursor(&self, sort: Sort) -> Cursor {
        let at = match sort {
            Sort::CreatedAt => self.created_at,
            Sort::ExecuteAt => self.execute_at,
        };
        Cursor { at, id: self.id }
    }
}
