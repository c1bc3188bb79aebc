//! The texts of the keyed statements, for tests that look at how the server would carry them out.

use crate::{
    access, attempts, bulk, change, change_all, claim, conflict, create, due, events, expired, gather, groups, membership, nudge,
    operation, options, ownership, purge, read, settle,
};

/// How sessions that run these statements are set up.
pub const SESSION: [(&str, &str); 6] = options::KEYED_STATEMENTS;

/// What the scheduler says.
pub const SCHEDULER: [(&str, &str); 21] = [
    ("due", due::DUE),
    ("claim and read", claim::CLAIM_AND_READ),
    ("claim", claim::CLAIM),
    ("claim what no session holds", claim::CLAIM_UNHELD),
    ("read claimed", claim::READ_CLAIMED),
    ("expired", expired::EXPIRED),
    ("read expired", expired::READ_EXPIRED),
    ("finish", settle::FINISH),
    ("finish, remembering", settle::FINISH_REMEMBERING),
    ("finish again", settle::FINISH_AGAIN),
    ("finish again, remembering", settle::FINISH_AGAIN_REMEMBERING),
    ("postpone", settle::POSTPONE),
    ("postpone, remembering", settle::POSTPONE_REMEMBERING),
    ("purge", purge::PURGE),
    ("is sparse", purge::IS_SPARSE),
    ("acquire", ownership::ACQUIRE),
    ("release", ownership::RELEASE),
    ("leave", ownership::LEAVE),
    ("heartbeat", membership::HEARTBEAT),
    ("cluster", membership::CLUSTER),
    ("nudge", nudge::NUDGE),
];

/// What callers say about timers they know by id.
pub const CALLERS: [(&str, &str); 41] = [
    ("insert", create::INSERT),
    ("insert what is free", create::INSERT_FREE),
    ("read", read::READ),
    ("cancel", change::CANCEL),
    ("cancel what is free", gather::CANCEL_FREE),
    ("replace what is free", gather::REPLACE_FREE),
    ("reopen", change::REOPEN),
    ("cancel all", bulk::CANCEL_ALL),
    ("still pending", bulk::STILL_PENDING),
    ("count group", groups::COUNT_GROUP),
    ("group members", groups::GROUP_MEMBERS),
    ("attempts", attempts::ATTEMPTS),
    ("attempts of events", events::ATTEMPTS_AT),
    ("events", events::EVENTS),
    ("forget events", events::FORGET_EVENTS),
    ("add key", access::ADD_KEY),
    ("revoke key", access::REVOKE_KEY),
    ("lock due", conflict::LOCK_DUE),
    ("lock outcome", conflict::LOCK_OUTCOME),
    ("read definition", conflict::READ_DEFINITION),
    ("replace pending", conflict::REPLACE_PENDING),
    ("replace finished", conflict::REPLACE_FINISHED),
    ("readdress pending", conflict::READDRESS_PENDING),
    ("lock paused", conflict::LOCK_PAUSED),
    ("replace paused", conflict::REPLACE_PAUSED),
    ("readdress paused", conflict::READDRESS_PAUSED),
    ("lock due in bulk", change_all::LOCK_DUE),
    ("lock paused in bulk", change_all::LOCK_PAUSED),
    ("lock outcomes in bulk", change_all::LOCK_OUTCOME),
    ("standing in bulk", change_all::STANDING),
    ("options in bulk", change_all::OPTIONS),
    ("end in bulk", change_all::END),
    ("let expire in bulk", change_all::LET_EXPIRE),
    ("move in bulk", change_all::MOVE),
    ("pause in bulk", change_all::PAUSE),
    ("resume in bulk", change_all::RESUME),
    ("reopen in bulk", change_all::REOPEN),
    ("remove in bulk", change_all::REMOVE),
    ("lock operation", operation::LOCK_OPERATION),
    ("progress", operation::PROGRESS),
    ("finish operation", operation::FINISH_OPERATION),
];
