//! One file a page: each reads what was asked, asks the commands, and renders the answer.

pub(crate) mod about;
pub(crate) mod destinations;
pub(crate) mod overview;
pub(crate) mod timer;
pub(crate) mod timers;
