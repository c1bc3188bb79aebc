//! The texts of the keyed statements, for tests that look at how the server would carry them out.

use domain::TimerId;
use sqlx::types::Uuid;
use store::Filter;

use crate::{
    access, attempts, bulk, change, claim, conflict, create, due, expired, groups, matching, membership, nudge, options,
    ownership, purge, read, settle,
};

/// How sessions that run these statements are set up.
pub const SESSION: [(&str, &str); 6] = options::KEYED_STATEMENTS;

/// What the scheduler says.
pub const SCHEDULER: [(&str, &str); 20] = [
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
    ("acquire", ownership::ACQUIRE),
    ("release", ownership::RELEASE),
    ("leave", ownership::LEAVE),
    ("heartbeat", membership::HEARTBEAT),
    ("cluster", membership::CLUSTER),
    ("nudge", nudge::NUDGE),
];

/// What callers say about timers they know by id.
pub const CALLERS: [(&str, &str); 18] = [
    ("insert", create::INSERT),
    ("insert what is free", create::INSERT_FREE),
    ("read", read::READ),
    ("cancel", change::CANCEL),
    ("reopen", change::REOPEN),
    ("cancel all", bulk::CANCEL_ALL),
    ("still pending", bulk::STILL_PENDING),
    ("metadata", matching::METADATA),
    ("group members", groups::GROUP_MEMBERS),
    ("attempts", attempts::ATTEMPTS),
    ("add key", access::ADD_KEY),
    ("revoke key", access::REVOKE_KEY),
    ("lock due", conflict::LOCK_DUE),
    ("lock outcome", conflict::LOCK_OUTCOME),
    ("read definition", conflict::READ_DEFINITION),
    ("replace pending", conflict::REPLACE_PENDING),
    ("replace finished", conflict::REPLACE_FINISHED),
    ("readdress pending", conflict::READDRESS_PENDING),
];

/// How timers that match are looked for: by the walk first, then by the search.
pub fn matching(filter: &Filter, shards: u16) -> [String; 2] {
    let matching = matching::Matching { filter: filter.clone(), after: Some(TimerId::from_uuid(Uuid::nil())), limit: 0, shards };
    [matching.walk(), matching.search()]
}
