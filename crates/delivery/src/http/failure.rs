//! Errors of the network in words for the owner of a timer.

use std::{fmt, io};

use ::http::StatusCode;
use domain::{CallbackUrl, Span};

use super::{
    ANSWER_HEAD_BYTES_MAX,
    connect::{CONNECT_MAX, ConnectError},
    connections::CallError,
    error_chain::{cause, innermost},
    intake::Excess,
};
use crate::{Failure, FailureKind, Outcome, outcome::CALLED};

/// What a message shows of a URL; the rest would push the reason out.
const PLACE_CHARS_MAX: usize = 200;

/// Whom a call went to. Written without the query, where people keep their keys.
#[derive(Clone, Copy)]
pub(super) struct Place<'a>(pub &'a CallbackUrl);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A parsed URL is ASCII.
        let whole = self.0.without_query();
        match whole.get(..PLACE_CHARS_MAX) {
            Some(start) if start.len() < whole.len() => write!(f, "{start}…"),
            _ => f.write_str(whole),
        }
    }
}

impl Place<'_> {
    pub fn failure(self, kind: FailureKind, reason: impl fmt::Display) -> Failure {
        Failure::new(kind, format!("{reason}{CALLED}{self})"))
    }

    pub fn late(self, timeout: Span) -> Failure {
        self.failure(FailureKind::Timeout, format!("no answer within {timeout}"))
    }

    pub fn status(self, status: StatusCode) -> Failure {
        let note = if status.is_redirection() { "; redirects are not followed" } else { "" };
        self.failure(FailureKind::Status(status.as_u16()), format!("answered {status}{note}"))
    }

    pub fn long_head(self) -> Failure {
        let reason = format!("answered with more than 100 headers or {ANSWER_HEAD_BYTES_MAX} bytes of them");
        self.failure(FailureKind::TooLarge, reason)
    }

    pub fn explain(self, error: &CallError, timeout: Span) -> Outcome {
        match error {
            CallError::Late => self.late(timeout).into(),
            CallError::Connect(ConnectError::Short(reason)) => Outcome::NotAttempted { reason: *reason },
            CallError::Connect(error) => self.explain_connect(error).into(),
            CallError::Exchange(error) => self.explain_exchange(error).into(),
        }
    }

    fn explain_connect(self, error: &ConnectError) -> Failure {
        match error {
            ConnectError::Denied(denied) => self.failure(FailureKind::Egress, denied),
            ConnectError::Lookup(error) => self.failure(FailureKind::Dns, format!("host name not resolved: {error}")),
            ConnectError::NoAddress => self.failure(FailureKind::Dns, "host name has no address"),
            ConnectError::Tls(error) => match cause::<io::Error>(error.as_ref()).map(innermost) {
                Some(reason) => self.failure(FailureKind::Tls, format!("TLS handshake failed: {reason}")),
                None => self.failure(FailureKind::Tls, format!("TLS handshake failed: {error}")),
            },
            // It never gets here: see `explain`.
            ConnectError::Short(_) => self.failure(FailureKind::Unreachable, error),
            ConnectError::Timeout => self.failure(FailureKind::Timeout, format!("no connection within {CONNECT_MAX:?}")),
            ConnectError::Dial(error) => match cause::<io::Error>(error.as_ref()) {
                Some(error) => self.explain_dial(error),
                None => self.failure(FailureKind::Unreachable, format!("no connection: {error}")),
            },
        }
    }

    fn explain_dial(self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => self.failure(FailureKind::Refused, "connection refused"),
            io::ErrorKind::ConnectionReset => self.failure(FailureKind::Reset, "connection reset while connecting"),
            io::ErrorKind::TimedOut => self.failure(FailureKind::Timeout, format!("no connection within {CONNECT_MAX:?}")),
            _ => self.failure(FailureKind::Unreachable, format!("no connection: {error}")),
        }
    }

    fn explain_exchange(self, error: &hyper::Error) -> Failure {
        let excess = cause::<io::Error>(error).and_then(|error| innermost(error).downcast_ref::<Excess>());
        if let Some(excess) = excess {
            self.failure(FailureKind::Answer, excess)
        } else if error.is_parse_too_large() {
            self.long_head()
        } else if error.is_parse() {
            self.failure(FailureKind::Answer, "the answer is not HTTP/1.1")
        } else if error.is_user() {
            self.failure(FailureKind::Request, format!("cannot be sent: {error}"))
        } else {
            self.failure(FailureKind::Reset, "connection closed before an answer came")
        }
    }
}
