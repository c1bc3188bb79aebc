//! Servers that live as long as a test, and the ports they listen on.
//!
//! Only ever a dev-dependency. A test asks for a real PostgreSQL and gets one of its own: a fresh cluster in a temporary
//! directory, on a free port of 127.0.0.1, durable as in production (`fsync` stays on). It is gone when it is dropped, and it
//! is gone when the test process ends in any other way:
//!
//! ```text
//!   test thread ──"start this"──▶ keeper thread ──fork──▶ setpriv ──exec──▶ postgres
//!                                 (never ends)            asks for SIGQUIT at the keeper's end
//! ```
//!
//! Most tests want `throwaway::postgres().create_database()`: one server for the test binary, one database for the test. A
//! test that stops the server takes a `Postgres::start()` for itself.
//!
//! Everything here panics with a sentence when it cannot do its job, for the reader is always somebody whose test failed.
#![expect(clippy::expect_used, reason = "a test that cannot have its server has to fail, and the message says why")]

mod binaries;
mod keeper;
mod port;
mod postgres;
mod server_user;

use std::sync::OnceLock;

pub use port::free_port;
pub use postgres::Postgres;

/// The PostgreSQL that all tests of one test binary share; started by the first that asks.
///
/// A static is never dropped, so its server ends through the keeper (see above), and its directory is removed by the next
/// `Postgres::start` on this machine.
pub fn postgres() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(Postgres::start)
}
