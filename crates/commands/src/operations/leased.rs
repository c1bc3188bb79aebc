//! An operation that this node carries out: it belongs to the node by a lease, and to other nodes after a time slice.

use std::time::Duration;

use domain::Span;
use store::{BulkOperation, Cursor, Progress};
use tokio::time::Instant;

use super::{matches::Matches, pace::FIRST_PAGE_TIMERS};
use crate::BulkWork;

/// For how long an operation is its node's after each page. Another node goes on with it when this has run out.
pub const LEASE: Span = Span::from_secs(5);
/// For how long timers of one operation are changed before another operation is carried out.
pub const TIME_SLICE: Duration = Duration::from_secs(2);

pub struct LeasedOperation {
    pub operation: BulkOperation,
    /// How many timers the next page has at most: less when one of them cannot be read.
    pub page: u32,
    /// Timers that match, were read, and are not changed yet.
    pub matches: Option<Matches>,
    /// There while its timers are counted. After a crash they are counted anew: nothing was changed yet.
    pub counting: Option<Counting>,
    /// When the time slice ends, counted from the first page of changes.
    slice_end: Option<Instant>,
}

/// How far the count of an operation has come. It is kept in memory only, so that an operation is not given back before it is counted.
pub struct Counting {
    pub timers: u64,
    pub cursor: Option<Cursor>,
    pub renewed: Instant,
}

impl LeasedOperation {
    pub fn new(operation: BulkOperation) -> Self {
        let has_begun = operation.cursor.is_some() || BulkWork::is_counted(&operation.work);
        let counting = (!has_begun).then(|| Counting { timers: 0, cursor: None, renewed: Instant::now() });
        Self { operation, page: FIRST_PAGE_TIMERS, matches: None, counting, slice_end: None }
    }

    /// Whether the next page of changes is the last of the time slice.
    pub fn is_slice_over(&mut self) -> bool {
        let now = Instant::now();
        *self.slice_end.get_or_insert(now + TIME_SLICE) <= now
    }
}

/// How far an operation has come with its next page, under its epoch. The lease is renewed.
pub const fn progress(operation: &BulkOperation, cursor: Option<Cursor>) -> Progress {
    let BulkOperation { id, epoch, .. } = operation;
    Progress { operation: *id, epoch: *epoch, cursor, errors: 0, matched: None, lease: LEASE }
}

/// How many timers an operation is done with.
pub const fn processed(operation: &BulkOperation) -> u64 {
    operation.changed + operation.skipped + operation.errors
}
