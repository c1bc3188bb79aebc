use domain::{TimerId, Timestamp};

/// A position in the order of due timers. It also names an entry: a timer is due at one time only, so of two entries of one
/// timer with different times one is stale, and the claim will tell which.
pub type Position = (Timestamp, TimerId);
