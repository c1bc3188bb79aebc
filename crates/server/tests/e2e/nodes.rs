//! Several services on one PostgreSQL: they share the work, and no receiver is called twice for it.

mod division;
mod lateness;
mod pauses;
mod skew;
mod status;
mod stopping;
