//! How sessions with PostgreSQL are opened, and the bulkheads that they are divided among.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use store_sql::{BulkheadLimits, Driver, NoSession};

use crate::{
    failure,
    options::{KEYED_STATEMENTS, ORDERED_STATEMENTS},
};

pub type Bulkhead = store_sql::Bulkhead<Connector>;

/// Opens sessions that are set up alike.
#[derive(Debug)]
pub struct Connector(PgConnectOptions);

impl Driver for Connector {
    const SERVER: &'static str = "PostgreSQL";
    const SESSIONS_DISCARDED: &'static str = "timer_postgres_sessions_discarded_total";
    const CONTENTION: &'static str = "timer_postgres_contention_total";

    type Session = PgConnection;

    async fn open(&self) -> Result<PgConnection, NoSession> {
        self.0.connect().await.map_err(|error| NoSession { is_passing: is_passing(&error), cause: failure::cause(error) })
    }

    async fn answers(session: &mut PgConnection) -> bool {
        session.ping().await.is_ok()
    }

    async fn close(session: PgConnection) {
        drop(Connection::close(session).await);
    }
}

/// Whether the same may succeed a moment later: the server does not listen yet, is starting, or it has too many sessions.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::ConnectionAborted | std::io::ErrorKind::ConnectionReset
        ),
        sqlx::Error::Database(reported) => matches!(reported.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// What is left to the planner of the server.
#[derive(Debug, Clone, Copy)]
pub enum Planning {
    /// Nothing: see [`KEYED_STATEMENTS`].
    Keyed,
    /// Little: see [`ORDERED_STATEMENTS`].
    Ordered,
}

/// How much a bulkhead may take, and what its statements are like.
#[derive(Debug, Clone, Copy)]
pub struct BulkheadConfig {
    pub name: &'static str,
    pub sessions_max: usize,
    /// The server ends a statement before we give up on it: then it is certain that nothing was done.
    pub statement_timeout: Duration,
    pub deadline: Duration,
    pub planning: Planning,
}

impl BulkheadConfig {
    /// Opens no session yet.
    pub fn bulkhead(self, options: &PgConnectOptions) -> Bulkhead {
        let Self { name, sessions_max, statement_timeout, deadline, planning } = self;
        let mut options = options.clone().options([("statement_timeout", format!("{}ms", statement_timeout.as_millis()))]);
        options = match planning {
            Planning::Keyed => options.options(KEYED_STATEMENTS),
            Planning::Ordered => options.options(ORDERED_STATEMENTS),
        };
        Bulkhead::new(Connector(options), BulkheadLimits { name, sessions_max, deadline })
    }
}
