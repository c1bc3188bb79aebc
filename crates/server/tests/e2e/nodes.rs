//! Several services on one database server: they share the work, and no receiver is called twice for it.

mod cassandra;
mod division;
mod each_engine;
mod floods;
mod lateness;
mod pauses;
mod skew;
mod status;
mod stopping;
