//! What failures of Cassandra mean: whether a write may have been made.

use domain::Cause;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use store::StoreError;

/// A read changes nothing, whatever went wrong.
pub fn of_read(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Cause::of(error))
}

/// What was read is not what was asked for.
pub fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Corrupt(Cause::of(error))
}

pub fn of_write(error: ExecutionError) -> StoreError {
    if is_not_done(&error) { StoreError::Unavailable(Cause::of(error)) } else { StoreError::Unknown(Cause::of(error)) }
}

/// Whether it is certain that the request changed nothing. A coordinator that lacks replicas may have found that out in the second round
/// of a contended Paxos write, whose first left a proposal behind: that is not certain.
fn is_not_done(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::BadQuery(_)
        | ExecutionError::EmptyPlan
        | ExecutionError::PrepareError(_)
        | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(refusal, _)) => matches!(
            refusal,
            DbError::SyntaxError
                | DbError::Invalid
                | DbError::AuthenticationError
                | DbError::Unauthorized
                | DbError::ConfigError
                | DbError::IsBootstrapping
                | DbError::Unprepared { .. }
                | DbError::ProtocolError
        ),
        ExecutionError::LastAttemptError(attempt) => matches!(
            attempt,
            RequestAttemptError::SerializationError(_)
                | RequestAttemptError::CqlRequestSerialization(_)
                | RequestAttemptError::UnableToAllocStreamId
                | RequestAttemptError::RepreparedIdMissingInBatch
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scylla::{errors::WriteType, statement::Consistency};

    use super::*;

    fn answered(refusal: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(refusal, String::new()))
    }

    #[test]
    fn only_what_was_surely_not_done_is_called_so() {
        let timeout =
            DbError::WriteTimeout { consistency: Consistency::Serial, received: 1, required: 2, write_type: WriteType::Cas };
        let lacking = DbError::Unavailable { consistency: Consistency::Serial, required: 2, alive: 1 };
        for unknown in [ExecutionError::RequestTimeout(Duration::ZERO), answered(timeout), answered(lacking)] {
            assert!(!of_write(unknown).is_not_done());
        }
        for refused in [ExecutionError::EmptyPlan, answered(DbError::Unauthorized), answered(DbError::Invalid)] {
            assert!(of_write(refused).is_not_done());
        }
    }
}
