//! The texts of the keyed statements, for tests that look at how the server would carry them out.

use crate::{change, claim, conflict, create, due, options, ownership, purge, read, settle};

/// How sessions that run these statements are set up.
pub const SESSION: [(&str, &str); 6] = options::KEYED_STATEMENTS;

/// What the scheduler says.
pub const SCHEDULER: [(&str, &str); 10] = [
    ("due", due::DUE),
    ("claim", claim::CLAIM),
    ("read claimed", claim::READ_CLAIMED),
    ("expired", claim::EXPIRED),
    ("finish", settle::FINISH),
    ("postpone", settle::POSTPONE),
    ("purge", purge::PURGE),
    ("acquire", ownership::ACQUIRE),
    ("renew", ownership::RENEW),
    ("release", ownership::RELEASE),
];

/// What callers say about timers they know by id.
pub const CALLERS: [(&str, &str); 8] = [
    ("insert", create::INSERT),
    ("read", read::READ),
    ("cancel", change::CANCEL),
    ("lock due", conflict::LOCK_DUE),
    ("lock outcome", conflict::LOCK_OUTCOME),
    ("read definition", conflict::READ_DEFINITION),
    ("replace pending", conflict::REPLACE_PENDING),
    ("replace finished", conflict::REPLACE_FINISHED),
];
