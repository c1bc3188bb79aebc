//! What a database's driver must do for its sessions to be pooled.

use std::{fmt::Debug, future::Future};

use domain::Cause;

/// Opens sessions with a database server.
pub trait Driver: Debug + Send + Sync + 'static {
    /// The server's name, for messages.
    const SERVER: &'static str;
    /// The counter of sessions that broke or did not answer in time, by bulkhead. The label is `lane`, which dashboards know.
    const SESSIONS_DISCARDED: &'static str;
    /// The counter of statements that were made again because other sessions were in their way.
    const CONTENTION: &'static str;

    type Session: Debug + Send + 'static;

    fn open(&self) -> impl Future<Output = Result<Self::Session, NoSession>> + Send;

    /// Whether the server still answers on this session. Before it answers, it has rolled back what the session left open.
    fn answers(session: &mut Self::Session) -> impl Future<Output = bool> + Send;

    /// Ends the session in order. The server notices a closed connection by itself, so nothing depends on it.
    fn close(session: Self::Session) -> impl Future<Output = ()> + Send;
}

/// Why there is no session. Nothing was sent.
#[derive(Debug)]
pub struct NoSession {
    /// The cause, for the log. It never shows a password.
    pub cause: Cause,
    /// Whether the same may succeed a moment later: the server does not listen yet, is starting, or has too many sessions.
    pub is_passing: bool,
}
