//! The texts of the keyed statements, for tests that look at how the server would carry them out.

use crate::{change, claim, conflict, create, due, options, ownership, purge, read, settle};

/// How sessions that run these statements are set up.
pub const SESSION: [(&str, &str); 6] = options::KEYED_STATEMENTS;

/// What the scheduler says.
pub const SCHEDULER: [(&str, &str); 12] = [
    ("due", due::DUE),
    ("claim", claim::CLAIM),
    ("claim what nobody holds", claim::CLAIM_UNHELD),
    ("read claimed", claim::READ_CLAIMED),
    ("expired", claim::EXPIRED),
    ("read expired", claim::READ_EXPIRED),
    ("finish", settle::FINISH),
    ("postpone", settle::POSTPONE),
    ("purge", purge::PURGE),
    ("acquire", ownership::ACQUIRE),
    ("renew", ownership::RENEW),
    ("release", ownership::RELEASE),
];

/// What callers say about timers they know by id.
pub const CALLERS: [(&str, &str); 9] = [
    ("insert", create::INSERT),
    ("read", read::READ),
    ("cancel", change::CANCEL),
    ("lock due", conflict::LOCK_DUE),
    ("lock outcome", conflict::LOCK_OUTCOME),
    ("read definition", conflict::READ_DEFINITION),
    ("replace pending", conflict::REPLACE_PENDING),
    ("replace finished", conflict::REPLACE_FINISHED),
    ("readdress pending", conflict::READDRESS_PENDING),
];
