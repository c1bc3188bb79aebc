//! What an error of the driver means to a caller.

use domain::Cause;
use rusqlite::{Error, ErrorCode, ffi};
use store::StoreError;

use crate::rows::is_senseless;

/// A [`StoreError`] on its way out of code that speaks to the driver.
#[derive(Debug)]
pub struct Failure(pub StoreError);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(classify(error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<store::Unreadable> for Failure {
    fn from(unreadable: store::Unreadable) -> Self {
        Self(StoreError::Corrupt(Cause::of(unreadable)))
    }
}

/// Says what a failure of anything but the commit itself means: what failed here is rolled back, so nothing was done.
fn classify(error: Error) -> StoreError {
    let kind: fn(Cause) -> StoreError = match &error {
        Error::SqliteFailure(code, _) => match code.code {
            ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::Full,
            // The shared index of the log could not grow: the disk is full, only found out elsewhere.
            ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt,
            // Every statement expects what a sound database holds: a row that is in its way stays there, however often it is tried.
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => StoreError::Corrupt,
            _ => StoreError::Unavailable,
        },
        error if is_senseless(error) => StoreError::Corrupt,
        _ => StoreError::Unavailable,
    };
    kind(Cause::of(error))
}

/// Says what a failure of the commit means. When the sync fails the log may still hold the whole transaction: this process goes on
/// without it, but one that dies right now would find it there.
pub fn classify_commit(error: Error) -> StoreError {
    match &error {
        Error::SqliteFailure(code, _) if matches!(code.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => {
            StoreError::Unknown(Cause::of(error))
        }
        _ => classify(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_driver_says_whether_to_wait_or_to_act() {
        let table = [
            (ffi::SQLITE_FULL, "full", "full"),
            (ffi::SQLITE_READONLY, "full", "full"),
            (ffi::SQLITE_IOERR_SHMSIZE, "full", "full"),
            (ffi::SQLITE_IOERR_WRITE, "unavailable", "unavailable"),
            (ffi::SQLITE_IOERR_FSYNC, "unavailable", "unknown"),
            (ffi::SQLITE_BUSY, "unavailable", "unavailable"),
            (ffi::SQLITE_INTERRUPT, "unavailable", "unavailable"),
            (ffi::SQLITE_CORRUPT, "corrupt", "corrupt"),
            (ffi::SQLITE_NOTADB, "corrupt", "corrupt"),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "corrupt", "corrupt"),
            (ffi::SQLITE_MISMATCH, "corrupt", "corrupt"),
        ];
        for (code, in_a_request, at_commit) in table {
            let error = || Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(classify(error()).kind(), in_a_request, "{}", error());
            assert_eq!(classify_commit(error()).kind(), at_commit, "{}", error());
        }
    }
}
