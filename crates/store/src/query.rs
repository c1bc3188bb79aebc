use domain::{CorrelationId, Group, Key, Namespace, Status, TimerId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::Filter;

/// How many reads that can take long (lists, counts, statistics) a store serves at once. Above the store, keys share as many permits, so
/// that the reads of one key leave a session for the next one.
pub const SCANS_MAX: usize = 3;

/// How long a search may take, whatever it is asked for. An answer is promised within 250 ms; the rest is for its page and its way.
pub const SEARCH_BUDGET: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    pub filter: Filter,
    pub sort: Sort,
    pub order: Order,
    pub limit: u32,
    /// How many matching timers to pass over, counted from the cursor or the beginning.
    pub offset: u64,
    pub after: Option<Cursor>,
    /// How much longer the search may take to say how many match, where it has read all that may match anyway. `None` where it is not asked for.
    pub total_within: Option<Duration>,
    /// The time after which the search ends with what it has found. Some timers are looked at in any case, so that a client that
    /// goes on with the cursor comes to the end.
    pub budget: Duration,
}

/// The latest fifty timers.
impl Default for ListQuery {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            sort: Sort::default(),
            order: Order::default(),
            limit: 50,
            offset: 0,
            after: None,
            total_within: None,
            budget: SEARCH_BUDGET,
        }
    }
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

/// The place of a timer in a list, such as the last one of a page: its time in the order of the list, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub at: Timestamp,
    pub id: TimerId,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub timers: Vec<Summary>,
    /// The places of those that belong to the page and cannot be read. Whether they match may not be known.
    pub unreadable: Vec<Cursor>,
    /// Where the search goes on; `None` when nothing is left to look at. After an empty page, too, if the budget ran out.
    pub next: Option<Cursor>,
    /// How many timers were looked at.
    pub scanned: u64,
    /// Whether the page has all that it can have; otherwise the budget ran out.
    pub complete: bool,
    /// How many match, on all pages. `None` where the query does not ask for it, or another search has to tell.
    pub total: Option<Count>,
}

/// Nothing was there to look at.
impl Default for Page {
    fn default() -> Self {
        Self { timers: Vec::new(), unreadable: Vec::new(), next: None, scanned: 0, complete: true, total: None }
    }
}

impl Page {
    /// How many timers it has, those that cannot be read included.
    pub const fn count(&self) -> usize {
        self.timers.len() + self.unreadable.len()
    }
}

/// The maximum number of timers that are counted one by one.
pub const COUNTED_MAX: u64 = 100_000;

/// How many timers there are of a kind. Many are not counted anew for every client: the number may be an estimate, and says so. An
/// estimate is never below what was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub timers: u64,
    pub is_estimate: bool,
}

impl Count {
    pub const fn exactly(timers: u64) -> Self {
        Self { timers, is_estimate: false }
    }

    pub const fn about(timers: u64) -> Self {
        Self { timers, is_estimate: true }
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
    /// How many have each status that at least one of them has.
    pub by_status: BTreeMap<Status, u64>,
    /// Whether there are more than [`COUNTED_MAX`] timers, so that not all of them were counted.
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
    pub revision: u32,
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
