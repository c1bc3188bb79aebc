//! What an error of the driver or of the server means.

use domain::Cause;
use mongodb::error::{Error, ErrorKind};
use store::StoreError;

/// A write that is refused by the database because a document with its key is there.
pub const DUPLICATE_KEY: i32 = 11_000;

/// A read that failed, or a command that may be repeated.
pub fn unavailable(error: Error) -> StoreError {
    StoreError::Unavailable(cause(error))
}

/// A document that this driver cannot have written.
pub fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("a document of MongoDB has {what}").into())
}

/// A command that writes and failed as a whole. Where it is not certain that nothing was done, that is unknown.
pub fn of_command(error: Error) -> StoreError {
    match error.kind.as_ref() {
        // It was never sent.
        ErrorKind::ServerSelection { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::Authentication { .. }
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::InvalidTlsConfig { .. }
        | ErrorKind::IncompatibleServer { .. }
        | ErrorKind::Shutdown => unavailable(error),
        ErrorKind::Command(refusal) => match judge(refusal.code) {
            Verdict::Full => StoreError::Full(cause(error)),
            Verdict::NotUnderstood => unavailable(error),
            Verdict::Other => StoreError::Unknown(cause(error)),
        },
        _ => StoreError::Unknown(cause(error)),
    }
}

/// One write of a command that failed by itself: it was not done. A server that steps down in the middle is the exception.
pub fn of_write(code: i32, message: &str) -> StoreError {
    let cause = Cause::from(format!("{message} ({code})"));
    match judge(code) {
        Verdict::Full => StoreError::Full(cause),
        _ if is_interrupted(code) => StoreError::Unknown(cause),
        _ => StoreError::Unavailable(cause),
    }
}

/// The error in the words of its kind: the whole of it repeats the answer of the server.
pub fn cause(error: Error) -> Cause {
    Cause::new(error.kind.to_string(), error)
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// There is no space, or writing is not allowed.
    Full,
    /// The command was refused before any of its writes was tried.
    NotUnderstood,
    Other,
}

const fn judge(code: i32) -> Verdict {
    match code {
        // No permission, no space, writes are blocked by an administrator.
        13 | 14_031 | 371 => Verdict::Full,
        // A value, its type, its form; a log-in; an unknown command; an invalid option or write concern.
        2 | 9 | 14 | 18 | 59 | 72 | 79 => Verdict::NotUnderstood,
        _ => Verdict::Other,
    }
}

/// The server shuts down, steps down, or the operation ran out of time.
const fn is_interrupted(code: i32) -> bool {
    matches!(code, 50 | 91 | 189 | 262 | 10_058 | 10_107 | 11_600 | 11_601 | 11_602 | 13_435 | 13_436)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_codes() {
        for (code, kind) in [(13, "full"), (14_031, "full"), (10_334, "unavailable"), (11_602, "unknown"), (10_107, "unknown")] {
            assert_eq!(of_write(code, "it failed").kind(), kind, "{code}");
        }
        assert_eq!(judge(59), Verdict::NotUnderstood);
        assert_eq!(judge(189), Verdict::Other);
    }

    #[test]
    fn a_broken_connection_leaves_a_write_unknown() {
        let broken = Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(!of_command(broken.clone()).is_not_done());
        assert!(unavailable(broken).is_not_done());
    }
}
