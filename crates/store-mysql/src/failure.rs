//! What an error of the driver means: see [`store_sql::Verdict`].

use domain::Cause;
use sqlx::mysql::MySqlDatabaseError;
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
        sqlx::Error::Database(_) => judge(number(&error).unwrap_or_default(), in_flight),
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

/// The number of the error, if the server reported one.
pub fn number(error: &sqlx::Error) -> Option<u16> {
    error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number)
}

/// Whether nothing was done only because other sessions, or changes of the tables, were in the way: the same may succeed a moment later.
pub fn is_contention(error: &sqlx::Error) -> bool {
    number(error).is_some_and(|number| judge(number, false) == Verdict::Contention)
}

/// The error, in words that show the server's number for it.
pub fn cause(error: sqlx::Error) -> Cause {
    Cause::new(describe(&error), error)
}

/// The error in words, with the server's number for it. Neither the driver nor the server puts a password into one.
pub fn describe(error: &sqlx::Error) -> String {
    match error.as_database_error().zip(number(error)) {
        Some((reported, number)) => format!("{} ({number})", reported.message()),
        None => error.to_string(),
    }
}

/// What a report of the server means. A statement that fails is rolled back before that is reported; a session that is ended can have
/// committed just before.
const fn judge(number: u16, in_flight: bool) -> Verdict {
    match number {
        // The server shuts down, or the connection was killed.
        1053 | 1927 | 3169 if in_flight => Verdict::Lost,
        1053 | 1927 | 3169 => Verdict::Broken,
        // A commit that failed for another reason than those below, such as a node that lost its cluster meanwhile: it may be made yet.
        1180 if in_flight => Verdict::Lost,
        // A node of a cluster that has no majority, or is not in step yet. A proxy may find another one.
        1047 => Verdict::Broken,
        // A deadlock, also one between the nodes of a cluster; a row that changed since its snapshot. The transaction is rolled back.
        1213 | 1614 | 1020 => Verdict::Contention,
        // TiDB: a commit that was sent to the storage, and of which nothing is known; an error without a number of its own.
        8501 | 1105 if in_flight => Verdict::Lost,
        // TiDB: another session has written the row, or changed the tables; a part of the storage is busy, or has just moved. A commit that
        // fails with one of these was given up before it counted.
        1105 | 8002 | 8005 | 8022 | 8027 | 8028 | 8229 | 9001..=9005 | 9007 => Verdict::Contention,
        // A lock was waited for too long, or not waited for. The statement is rolled back, and the transaction with it by the next step.
        1205 | 3572 => Verdict::Locked,
        1022 | 1062 | 1586 => Verdict::Duplicate,
        // No space, or no permission.
        1021 | 1026 | 1044 | 1114 | 1142 | 1143 | 1227 => Verdict::Full,
        // The server only reads.
        1290 | 1792 | 1836 => Verdict::ReadOnly,
        // A damaged table or index; a row that a foreign key of another table holds, of which there are none here.
        1034 | 1194 | 1195 | 1451 | 1712 => Verdict::Corrupt,
        // A prepared statement that is gone, that no longer fits its tables, or one too many: another session prepares its own.
        1243 | 1461 | 1615 => Verdict::Broken,
        // Values that do not fit.
        1153 | 1264 | 1292 | 1300 | 1366 | 1406 | 3140 | 3141 => Verdict::Value,
        _ => Verdict::NotDone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_reports() {
        use Verdict::{Broken, Contention, Corrupt, Duplicate, Full, Locked, Lost, NotDone, ReadOnly, Value};
        // number, before a commit, while a commit is under way
        for (number, before, during) in [
            (1053, Broken, Lost),
            (1927, Broken, Lost),
            (1180, NotDone, Lost),
            (1047, Broken, Broken),
            (1213, Contention, Contention),
            (1105, Contention, Lost),
            (8501, NotDone, Lost),
            (8028, Contention, Contention),
            (9005, Contention, Contention),
            (9007, Contention, Contention),
            (1205, Locked, Locked),
            (3572, Locked, Locked),
            (1062, Duplicate, Duplicate),
            (1114, Full, Full),
            (1142, Full, Full),
            (1290, ReadOnly, ReadOnly),
            (1451, Corrupt, Corrupt),
            (1712, Corrupt, Corrupt),
            (8027, Contention, Contention),
            (1615, Broken, Broken),
            (1406, Value, Value),
            (1064, NotDone, NotDone),
            (1969, NotDone, NotDone),
        ] {
            assert_eq!(judge(number, false), before, "{number} before a commit");
            assert_eq!(judge(number, true), during, "{number} during a commit");
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
}
