//! One file a page: each reads what was asked, asks the commands, and renders the answer.

pub(crate) mod about;
pub(crate) mod bulk;
mod bulk_selection;
mod bulk_work;
pub(crate) mod cluster;
pub(crate) mod destinations;
pub(crate) mod edit_timer;
pub(crate) mod failed;
pub(crate) mod inbox;
pub(crate) mod keys;
pub(crate) mod namespaces;
pub(crate) mod new_timer;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod signature;
mod tiles;
pub(crate) mod timer;
pub(crate) mod timers;
