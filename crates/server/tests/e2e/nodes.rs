//! Several services on one database server: they share the work, and no receiver is called twice for it.

mod cassandra;
mod division;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod floods;
mod lateness;
mod mongodb;
mod pauses;
mod skew;
mod status;
mod stopping;
