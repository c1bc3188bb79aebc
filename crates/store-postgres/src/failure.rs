//! What an error of the driver means to a caller.
//!
//! ```text
//!                              before the commit was sent      while a commit is under way
//!   the server says ERROR      not done                        not done
//!   the server says FATAL      not done                        unknown
//!   the connection breaks      not done                        unknown
//!   no answer in time          not done                        unknown
//! ```

use domain::Cause;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use store::{StoreError, Unreadable};

/// A failed step of a call: what to tell the caller, and what to do with the session.
#[derive(Debug)]
pub struct Failure {
    pub error: StoreError,
    /// The session must not be used again.
    pub session_is_broken: bool,
    /// Nothing was done, only because other transactions were at it at the same time: the same call can be made again at once.
    pub is_contention: bool,
    /// Nothing was done, because another transaction held a row for longer than this session waits for one.
    pub met_a_lock: bool,
    /// Nothing was done, because a key is there already that this call took to be free.
    pub met_a_duplicate: bool,
    /// The server refused a value, not the work: a batch without it can succeed.
    pub is_about_a_value: bool,
}

impl Failure {
    const fn plain(error: StoreError) -> Self {
        Self {
            error,
            session_is_broken: false,
            is_contention: false,
            met_a_lock: false,
            met_a_duplicate: false,
            is_about_a_value: false,
        }
    }

    /// No session could be had, so nothing was sent.
    pub fn no_session(error: sqlx::Error) -> Self {
        Self::plain(StoreError::Unavailable(match error {
            sqlx::Error::PoolTimedOut => Cause::new("no connection to PostgreSQL became free or could be made in time", error),
            error => cause(error),
        }))
    }

    /// The answer stays out.
    pub fn no_answer(what: &str, may_be_done: bool) -> Self {
        let verdict = if may_be_done { Verdict::Lost } else { Verdict::Broken };
        Self::from_verdict(verdict, what.into())
    }

    /// Other transactions kept changing what this call wanted to change.
    pub fn contention(what: &str) -> Self {
        Self { is_contention: true, ..Self::plain(StoreError::Unavailable(what.into())) }
    }

    /// Something was committed before this failure: whatever failed, part of the call is done.
    pub fn after_a_commit(self) -> Self {
        let error = StoreError::Unknown(Cause::of(self.error));
        Self { error, is_contention: false, ..self }
    }

    /// For a statement that a sound database never refuses: a row in its way, or a value, stays there however often it is tried.
    pub fn or_damage(self) -> Self {
        match self.error {
            StoreError::Unavailable(cause) if self.met_a_duplicate || self.is_about_a_value => {
                Self { error: StoreError::Corrupt(cause), ..self }
            }
            _ => self,
        }
    }

    /// The same, if there was such a commit.
    pub fn after_a_commit_if(self, something_was_committed: bool) -> Self {
        if something_was_committed { self.after_a_commit() } else { self }
    }

    fn of(error: sqlx::Error, in_flight: bool) -> Self {
        let verdict = match &error {
            sqlx::Error::Database(reported) => {
                let severity = reported.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity);
                let ends_session = !matches!(severity, Some(PgSeverity::Error));
                let code = reported.code().unwrap_or_default();
                judge(&code, ends_session, in_flight)
            }
            // What the server sent is complete but not what this program expects.
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) | sqlx::Error::Decode(_) if !in_flight => {
                Verdict::Corrupt
            }
            // The statement was never sent.
            sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => Verdict::Value,
            _ if in_flight => Verdict::Lost,
            _ => Verdict::Broken,
        };
        Self::from_verdict(verdict, cause(error))
    }

    fn from_verdict(verdict: Verdict, cause: Cause) -> Self {
        let broken = |error| Self { session_is_broken: true, ..Self::plain(error) };
        match verdict {
            Verdict::NotDone => Self::plain(StoreError::Unavailable(cause)),
            Verdict::Value => Self { is_about_a_value: true, ..Self::plain(StoreError::Unavailable(cause)) },
            Verdict::Contention => Self { is_contention: true, ..Self::plain(StoreError::Unavailable(cause)) },
            Verdict::Locked => Self { met_a_lock: true, ..Self::plain(StoreError::Unavailable(cause)) },
            Verdict::Duplicate => Self { met_a_duplicate: true, ..Self::plain(StoreError::Unavailable(cause)) },
            Verdict::Full => Self::plain(StoreError::Full(cause)),
            // After a fail-over the old address may lead to a standby; a new session may find the new primary.
            Verdict::ReadOnly => broken(StoreError::Full(cause)),
            Verdict::Corrupt => Self::plain(StoreError::Corrupt(cause)),
            Verdict::Broken => broken(StoreError::Unavailable(cause)),
            Verdict::Lost => broken(StoreError::Unknown(cause)),
        }
    }
}

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Self {
        Self::plain(StoreError::Corrupt(Cause::of(unreadable)))
    }
}

/// Says at each step what its failure would mean.
pub trait Step<T> {
    /// If this fails, nothing was done: a read, or a statement inside a transaction.
    fn or_not_done(self) -> Result<T, Failure>;
    /// If this fails without a clear answer, it may have been done: a statement that commits.
    fn or_unknown(self) -> Result<T, Failure>;
}

impl<T> Step<T> for Result<T, sqlx::Error> {
    fn or_not_done(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::of(error, false))
    }

    fn or_unknown(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::of(error, true))
    }
}

/// The error, in words that show the server's code.
pub fn cause(error: sqlx::Error) -> Cause {
    Cause::new(describe(&error), error)
}

/// The error in words, with the server's code. Neither the driver nor the server puts a password into one.
pub fn describe(error: &sqlx::Error) -> String {
    match error.as_database_error().and_then(|reported| reported.code().map(|code| (reported, code))) {
        Some((reported, code)) => format!("{} ({code})", reported.message()),
        None => error.to_string(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    NotDone,
    Value,
    Contention,
    Locked,
    Duplicate,
    Full,
    ReadOnly,
    Corrupt,
    /// Not done, and the session is of no more use.
    Broken,
    /// Perhaps done, and the session is of no more use.
    Lost,
}

/// What a report of the server means. `ends_session`: it said FATAL or PANIC. An ERROR rolls the statement back before it is
/// reported; a session that is ended can have committed just before (its answer then never comes).
fn judge(code: &str, ends_session: bool, in_flight: bool) -> Verdict {
    match code {
        _ if ends_session && in_flight => Verdict::Lost,
        "53100" => Verdict::Full,
        // read_only_sql_transaction
        "25006" => Verdict::ReadOnly,
        _ if ends_session => Verdict::Broken,
        // serialization_failure, deadlock_detected
        "40001" | "40P01" => Verdict::Contention,
        // lock_not_available
        "55P03" => Verdict::Locked,
        // unique_violation
        "23505" => Verdict::Duplicate,
        // insufficient_privilege
        "42501" => Verdict::Full,
        // data_corrupted, index_corrupted
        "XX001" | "XX002" => Verdict::Corrupt,
        // A prepared statement that is gone or no longer fits its tables: another session prepares it anew.
        "26000" | "0A000" => Verdict::Broken,
        _ if code.starts_with("22") || code.starts_with("54") => Verdict::Value,
        _ => Verdict::NotDone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_reports() {
        use Verdict::{Broken, Contention, Corrupt, Duplicate, Full, Locked, Lost, NotDone, ReadOnly, Value};
        // code, the session ends, before a commit, while a commit is under way
        for (code, ends_session, before, during) in [
            ("53100", false, Full, Full),
            ("53100", true, Full, Lost),
            ("25006", false, ReadOnly, ReadOnly),
            ("42501", false, Full, Full),
            ("40001", false, Contention, Contention),
            ("40P01", false, Contention, Contention),
            ("57014", false, NotDone, NotDone),
            ("55P03", false, Locked, Locked),
            ("23505", false, Duplicate, Duplicate),
            ("57P01", true, Broken, Lost),
            ("57P02", true, Broken, Lost),
            ("25P03", true, Broken, Lost),
            ("53200", false, NotDone, NotDone),
            ("42P01", false, NotDone, NotDone),
            ("22021", false, Value, Value),
            ("54000", false, Value, Value),
            ("XX001", false, Corrupt, Corrupt),
            ("0A000", false, Broken, Broken),
            ("26000", false, Broken, Broken),
        ] {
            assert_eq!(judge(code, ends_session, false), before, "{code} before a commit");
            assert_eq!(judge(code, ends_session, true), during, "{code} during a commit");
        }
    }

    #[test]
    fn a_broken_connection_is_unknown_only_where_something_may_have_been_done() {
        let broken = || Err::<(), _>(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()));
        let harmless = broken().or_not_done().unwrap_err();
        assert!(harmless.error.is_not_done() && harmless.session_is_broken);
        let decisive = broken().or_unknown().unwrap_err();
        assert!(!decisive.error.is_not_done() && decisive.session_is_broken);
    }

    #[test]
    fn a_row_in_the_way_is_damage_where_there_can_be_none() {
        for (verdict, kind) in [
            (Verdict::Duplicate, "corrupt"),
            (Verdict::Value, "corrupt"),
            (Verdict::NotDone, "unavailable"),
            (Verdict::Full, "full"),
        ] {
            assert_eq!(Failure::from_verdict(verdict, "".into()).or_damage().error.kind(), kind, "{verdict:?}");
        }
    }

    #[test]
    fn what_follows_a_commit_is_never_called_undone() {
        let failed = Failure::contention("another transaction").after_a_commit();
        assert!(!failed.error.is_not_done());
        assert!(!failed.is_contention);
    }
}
