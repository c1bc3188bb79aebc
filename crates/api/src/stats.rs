//! `GET /stats/due` and `GET /stats/fired`: what is to come and what was, in buckets of time.

pub(crate) mod due;
pub(crate) mod fired;
pub(crate) mod parameters;

#[cfg(test)]
mod tests;
