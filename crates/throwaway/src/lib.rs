//! Servers that live as long as a test, and the ports they listen on.
//!
//! Only ever a dev-dependency. A test asks for a real PostgreSQL, MariaDB, MySQL, TiDB, MongoDB, Cassandra, DynamoDB Local or NATS and gets one of its
//! own: fresh, in a temporary directory, on a free port of 127.0.0.1. It is gone when it is dropped, and it is gone when the test process ends in any
//! other way:
//!
//! ```text
//!   test thread ──"start this"──▶ keeper thread ──fork──▶ setpriv ──exec──▶ postgres, mariadbd, nats-server
//!                                 (never ends)            asks for a signal at the keeper's end
//! ```
//!
//! Most tests want `throwaway::postgres().create_database()`: one server for the test binary, one database for the test. A
//! test that stops the server takes a `Postgres::start()` for itself. PostgreSQL is durable as in production (`fsync` stays
//! on). MariaDB and MySQL wait for no disk: what they have written survives `stop_immediate`, for the kernel keeps it.
//!
//! `Galera::start()` is three MariaDB servers that replicate to each other.
//!
//! `throwaway::nats()` is shared in the same way: there each test takes subjects and stream names that no other test uses. A
//! test that stops or pauses the server takes a `Nats::start()`, one that wants users, a token, TLS or other limits describes
//! it with `Nats::builder()`, and one that kills a stream's leader takes a `NatsCluster`. What a single server acknowledged
//! survives `stop_immediate` even without `sync_always`, for the kernel keeps what was written; only a power cut would tell.
//!
//! Everything here panics with a full sentence when it cannot do its job, because its reader is a developer whose test failed.
#![expect(clippy::expect_used, reason = "a test that cannot have its server has to fail, and the message says why")]

mod binaries;
mod cassandra;
mod dynamodb;
mod home;
mod keeper;
mod mongodb;
mod mysql;
mod nats;
mod port;
mod postgres;
mod server_user;

use std::io::Write;
use std::sync::OnceLock;

pub use cassandra::{Cassandra, CassandraGuard};
pub use dynamodb::DynamoDb;
pub use mongodb::Mongodb;
pub use mysql::{Galera, Mysql};
pub use nats::{Nats, NatsBuilder, NatsCluster, NatsUser};
pub use port::free_port;
pub use postgres::Postgres;

/// The PostgreSQL that all tests of one test binary share. The first call starts it.
///
/// A static is never dropped, so its server ends through the keeper (see above), and its directory is removed by the next
/// `Postgres::start` on this machine.
pub fn postgres() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(Postgres::start)
}

/// The MariaDB that all tests of one test binary share. The first call starts it.
///
/// It ends as the shared PostgreSQL does.
pub fn mariadb() -> &'static Mysql {
    static SHARED: OnceLock<Mysql> = OnceLock::new();
    SHARED.get_or_init(Mysql::start_mariadb)
}

/// The MySQL that all tests of one test binary share; `None` where `scripts/setup.sh` could not install one.
///
/// It ends as the shared PostgreSQL does.
pub fn mysql() -> Option<&'static Mysql> {
    static SHARED: OnceLock<Option<Mysql>> = OnceLock::new();
    SHARED.get_or_init(Mysql::start_mysql).as_ref()
}

/// The TiDB that all tests of one test binary share; `None` where `scripts/tidb.sh` finds none.
///
/// It ends as the shared PostgreSQL does.
pub fn tidb() -> Option<&'static Mysql> {
    static SHARED: OnceLock<Option<Mysql>> = OnceLock::new();
    SHARED.get_or_init(Mysql::start_tidb).as_ref()
}

/// The MongoDB that all tests of one test binary share; `None` where `scripts/mongodb.sh` finds none.
///
/// It ends as the shared PostgreSQL does.
pub fn mongodb() -> Option<&'static Mongodb> {
    static SHARED: OnceLock<Option<Mongodb>> = OnceLock::new();
    SHARED.get_or_init(Mongodb::start).as_ref()
}

/// The DynamoDB Local that all tests of one test binary share, in memory; `None` where `scripts/dynamodb.sh` finds none.
///
/// It ends as the shared PostgreSQL does.
pub fn dynamodb() -> Option<&'static DynamoDb> {
    static SHARED: OnceLock<Option<DynamoDb>> = OnceLock::new();
    SHARED.get_or_init(DynamoDb::start_in_memory).as_ref()
}

/// The Cassandra of one node that all tests of one test binary share; `None`, and a line that says so, where `scripts/cassandra.sh` finds none.
///
/// It ends as the shared PostgreSQL does.
pub fn cassandra() -> Option<&'static Cassandra> {
    static SHARED: OnceLock<Option<Cassandra>> = OnceLock::new();
    let shared = SHARED.get_or_init(Cassandra::start).as_ref();
    if shared.is_none() {
        let line = "there is no Cassandra here: scripts/cassandra.sh --fetch gets one";
        // Past the capture of the test harness.
        drop(writeln!(std::io::stderr(), "{line}"));
    }
    shared
}

/// The NATS that all tests of one test binary share, JetStream included. The first call starts it.
///
/// It ends as the shared PostgreSQL does.
pub fn nats() -> &'static Nats {
    static SHARED: OnceLock<Nats> = OnceLock::new();
    SHARED.get_or_init(Nats::start)
}
