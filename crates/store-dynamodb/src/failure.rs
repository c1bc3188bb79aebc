//! What an error of the SDK or of the service means: whether a write may have been done.

use std::error::Error;

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::RequestId,
};
use domain::Cause;
use hyper_util::client::legacy;
use store::StoreError;

/// An error of the service or on the way to it, whatever was asked.
pub type Failed<E> = SdkError<E>;

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The condition of a write did not hold.
    Refused,
    /// Not done: too much at once, for the table, the account, or one partition of it.
    Throttled,
    /// Not done, and not before an operator acts.
    Full,
    NotDone,
    Unknown,
}

pub fn judge<E: ProvideErrorMetadata + Error + 'static>(error: &Failed<E>) -> Verdict {
    match error {
        SdkError::ConstructionFailure(_) => Verdict::NotDone,
        SdkError::DispatchFailure(_) if was_never_sent(error) => Verdict::NotDone,
        SdkError::ServiceError(refusal) => of_service(refusal.raw().status().as_u16(), error.code(), error.message()),
        _ => Verdict::Unknown,
    }
}

/// What the service said.
fn of_service(status: u16, code: Option<&str>, message: Option<&str>) -> Verdict {
    match code.unwrap_or_default() {
        "ConditionalCheckFailedException" => Verdict::Refused,
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "TransactionConflictException"
        | "ReplicatedWriteConflictException" => Verdict::Throttled,
        // No right to write, no key to encrypt with; more than 10 GB in one partition.
        "AccessDeniedException" | "ItemCollectionSizeLimitExceededException" => Verdict::Full,
        code if code.starts_with("KMS") => Verdict::Full,
        "ValidationException" if message.is_some_and(|message| message.contains("exceeded the maximum allowed size")) => {
            Verdict::Full
        }
        _ if (400..500).contains(&status) => Verdict::NotDone,
        _ => Verdict::Unknown,
    }
}

/// No connection was made.
fn was_never_sent(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<legacy::Error>()).any(legacy::Error::is_connect)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// A read that failed, or a request that may be repeated.
pub fn unavailable<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(error: Failed<E>) -> StoreError {
    StoreError::Unavailable(cause(error))
}

/// A write that failed and was not refused.
pub fn of_write<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(error: Failed<E>) -> StoreError {
    match judge(&error) {
        Verdict::Full => StoreError::Full(cause(error)),
        Verdict::Unknown => StoreError::Unknown(cause(error)),
        Verdict::Refused | Verdict::Throttled | Verdict::NotDone => unavailable(error),
    }
}

/// An item that this driver cannot have written.
pub fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("an item of DynamoDB has {what}").into())
}

/// The error in the words of the service, or of what is at the bottom of it: the SDK's own say no more than that there was one.
pub fn cause<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(error: Failed<E>) -> Cause {
    let text = match (&error, error.code()) {
        (SdkError::ServiceError(_), Some(code)) => {
            let request = error.meta().request_id().map(|id| format!(", request {id}")).unwrap_or_default();
            format!("{} ({code}{request})", error.message().unwrap_or("the request failed"))
        }
        _ => causes(&error).map(ToString::to_string).collect::<Vec<_>>().join(": "),
    };
    Cause::new(text, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_codes() {
        for (status, code, verdict) in [
            (400, "ConditionalCheckFailedException", Verdict::Refused),
            (400, "ProvisionedThroughputExceededException", Verdict::Throttled),
            (400, "ThrottlingException", Verdict::Throttled),
            (400, "RequestLimitExceeded", Verdict::Throttled),
            (400, "ItemCollectionSizeLimitExceededException", Verdict::Full),
            (400, "AccessDeniedException", Verdict::Full),
            (400, "KMSAccessDeniedException", Verdict::Full),
            (400, "ValidationException", Verdict::NotDone),
            (400, "ResourceNotFoundException", Verdict::NotDone),
            (400, "ExpiredTokenException", Verdict::NotDone),
            (500, "InternalServerError", Verdict::Unknown),
            (503, "ServiceUnavailable", Verdict::Unknown),
        ] {
            assert_eq!(of_service(status, Some(code), None), verdict, "{code}");
        }
        let large = "Item size to update has exceeded the maximum allowed size";
        assert_eq!(of_service(400, Some("ValidationException"), Some(large)), Verdict::Full);
        assert_eq!(of_service(502, None, None), Verdict::Unknown);
    }
}
