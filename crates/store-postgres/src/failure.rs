//! What an error of the driver means: see [`store_sql::Verdict`].

use domain::Cause;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
pub use store_sql::{Failure, Verdict};

/// Says at each step what its failure would mean.
pub trait Step<T> {
    /// If this fails, nothing was done: a read, or a statement inside a transaction.
    fn or_not_done(self) -> Result<T, Failure>;
    /// If this fails without a clear answer, it may have been done: a statement that commits.
    fn or_unknown(self) -> Result<T, Failure>;
}

impl<T> Step<T> for Result<T, sqlx::Error> {
    fn or_not_done(self) -> Result<T, Failure> {
        self.map_err(|error| failure(error, false))
    }

    fn or_unknown(self) -> Result<T, Failure> {
        self.map_err(|error| failure(error, true))
    }
}

fn failure(error: sqlx::Error, in_flight: bool) -> Failure {
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
    Failure::new(verdict, cause(error))
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

/// Whether a statement met another session, and may be repeated: it waited too long for a lock, or was ended to resolve a deadlock.
pub fn is_contention(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|reported| reported.code());
    code.is_some_and(|code| code == "55P03" || code == "40P01")
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
    use sqlx::{Connection, Executor, PgConnection};

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
        assert!(harmless.error.is_not_done() && harmless.verdict.breaks_the_session());
        let decisive = broken().or_unknown().unwrap_err();
        assert!(!decisive.error.is_not_done() && decisive.verdict.breaks_the_session());
    }

    /// Two sessions that lock two tables in opposite orders: the server ends one of them, and what it did may be tried again.
    #[tokio::test]
    async fn a_deadlock_is_contention_and_a_wrong_statement_is_not() {
        let url = throwaway::postgres().create_database();
        let mut one = PgConnection::connect(&url).await.unwrap();
        let mut other = PgConnection::connect(&url).await.unwrap();
        one.execute("CREATE TABLE a (); CREATE TABLE b ()").await.unwrap();
        one.execute("BEGIN; LOCK TABLE a").await.unwrap();
        other.execute("BEGIN; LOCK TABLE b").await.unwrap();
        let ended = tokio::join!(one.execute("LOCK TABLE b; ROLLBACK"), other.execute("LOCK TABLE a; ROLLBACK"));
        let error = ended.0.and(ended.1).unwrap_err();
        assert!(is_contention(&error), "{error}");

        let error = one.execute("ROLLBACK; SELECT nothing").await.unwrap_err();
        assert!(!is_contention(&error), "{error}");
    }
}
