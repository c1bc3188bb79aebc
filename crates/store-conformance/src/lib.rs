//! One suite that holds every store to the contract of [`store::Store`]: the same behaviours, one test each, whatever the
//! database. The in-memory model passes it too, so a failing behaviour means that a store differs from the executable
//! specification.
//!
//! ```text
//!   suite!(fixture) ──▶ one #[test] per behaviour ──▶ run ──▶ behaviour(fixture)
//!                                                               │  Stage::set: opens a fresh store,
//!                                                               │  takes all its shards
//!                                                               ▼
//!                                                  timer("http://…").key("k").due_in(secs(5))
//! ```
//!
//! # How a store joins
//!
//! With a dev-dependency on this crate, and a file `tests/conformance.rs`:
//!
//! ```ignore
//! struct Sqlite(tempfile::TempDir);
//!
//! #[async_trait::async_trait]
//! impl store_conformance::Fixture for Sqlite {
//!     async fn open(&self) -> Arc<dyn store::Store> {
//!         Arc::new(SqliteStore::open(&self.0.path().join("timers.db"), Arc::new(SystemClock::default())).unwrap())
//!     }
//! }
//!
//! store_conformance::suite!(Sqlite(tempfile::tempdir().unwrap()));
//! ```
//!
//! The expression is evaluated anew for each test, inside a Tokio runtime (it may `.await`): a fixture is one empty database
//! for one test alone. A store declares what it cannot do by overriding a method of [`Fixture`]; behaviours that need it are
//! then skipped, and say so.
//!
//! # How a behaviour is written
//!
//! As a `pub async fn` that takes a fixture, in the file of its subject, and as one more name in the list of [`suite!`]. All
//! timers are due around [`NOW`], a fixed instant in the past; only leases run by the database's clock, and
//! [`Stage::eventually`] waits for those. A behaviour that takes longer than [`BEHAVIOUR_SECONDS_MAX`] fails.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "this crate is tests: a panic is how a behaviour fails")]

mod draft;
mod fixture;
mod rates;
mod stage;
mod suite;

pub mod access;
pub mod attempts;
pub mod bulk;
pub mod change;
pub mod change_all;
pub mod claim;
pub mod create;
pub mod due;
pub mod events;
pub mod groups;
pub mod handover;
pub mod list;
pub mod members;
pub mod nudges;
pub mod opening;
pub mod operations;
pub mod outages;
pub mod ownership;
pub mod pause;
pub mod purge;
pub mod races;
pub mod read;
pub mod recovery;
pub mod revision;
pub mod search;
pub mod settle;
pub mod stats;
pub mod texts;
pub mod unreadable;
pub mod version_4;

pub use draft::{Draft, NOW, ago, ahead, micros, millis, secs, timer};
pub use fixture::{AnyFixture, BEHAVIOUR_SECONDS_MAX, Fixture, Running, run};
pub use rates::measure;
pub use stage::Stage;

/// Every behaviour, compiled with this crate: with a fixture of its own type it would be compiled once more for each store.
pub mod compiled {
    crate::behaviours! { on_any_fixture }
}
