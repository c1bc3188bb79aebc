//! Every refusal with its status, its code and its words.

use std::{fmt::Write, time::Duration};

use commands::{CommandError, Verb};
use domain::{
    Callback, Cause, Definition, Delivery, Invalid, Key, Namespace, Options, RequestedTime, Status, Timer, TimerId, Timestamp,
};
use http::StatusCode;
use store::StoreError;

use super::cell;
use crate::{BasePath, envelope::Code, error::ApiError, limits, v1};

/// The codes of the envelope, with what they mean.
const CODES: [(Code, &str); 7] = [
    (Code::Success, "success"),
    (Code::Unexpected, "something unexpected: the database is away, or a fault of the service"),
    (Code::Validation, "the request breaks a rule; the message names the field"),
    (Code::NotFound, "not found, or not for this key"),
    (Code::Unauthorized, "the key is missing or wrong, or lacks the right"),
    (Code::TooManyRequests, "too many requests; `Retry-After` says when the next one is accepted"),
    (Code::Conflict, "the key or id is taken, the timer has changed since, or its status does not permit it"),
];

fn noon() -> Timestamp {
    Timestamp::parse("at", "2030-01-31T12:00:00Z").expect("a time")
}

fn timer() -> Box<Timer> {
    let namespace = Namespace::parse("default").expect("a namespace");
    let at = noon();
    let key = Key::parse("order-456").expect("a key");
    let definition = Definition {
        id: TimerId::keyed(&namespace, &key),
        namespace,
        key: Some(key),
        asked: RequestedTime::At(at),
        callback: Callback::EVENT,
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    Box::new(Timer {
        definition,
        execute_at: at,
        status: Status::Executing,
        attempt: 1,
        last_error: None,
        executed_at: None,
        created_at: at,
        updated_at: at,
        revision: 1,
        pause: None,
    })
}

fn commands() -> Vec<CommandError> {
    let cause = || Cause::of("not told");
    vec![
        CommandError::Invalid(Invalid::new("execute_at", "must be in the future")),
        CommandError::Forbidden("this key opens no namespace"),
        CommandError::NotFound,
        CommandError::NoSuchKey,
        CommandError::NoSuchOperation,
        CommandError::WrongStatus { verb: Verb::Cancel, status: Status::Completed },
        CommandError::WrongStatus { verb: Verb::Pause, status: Status::Executing },
        CommandError::Expired { verb: Verb::Retry, at: noon() },
        CommandError::StaleRevision { revision: 8, expected: 7 },
        CommandError::Conflict(timer()),
        CommandError::IdTaken,
        CommandError::InDelivery(timer()),
        CommandError::TooMany { expected_max: 100 },
        CommandError::Searching,
        CommandError::TooManySearches,
        CommandError::TooManyOperations,
        CommandError::TooManyStreams("this key has 8 event streams open, which is as many as a key may have"),
        CommandError::Unavailable(StoreError::Unavailable(cause())),
        CommandError::Unknown(StoreError::Unknown(cause())),
        CommandError::Internal(StoreError::Corrupt(cause())),
    ]
}

/// One of each. A variant that is missing here is missing in `explained`, which the compiler notices.
fn refusals() -> Vec<ApiError> {
    let mut all: Vec<ApiError> = commands().into_iter().map(ApiError::Command).collect();
    all.extend([
        ApiError::Malformed("the body is not JSON".to_owned()),
        ApiError::Unauthorized,
        ApiError::TooManyRequests(Duration::from_secs(1)),
        ApiError::TooManyWrongKeys(Duration::from_secs(1)),
        ApiError::NoSuchRoute(BasePath::default()),
        ApiError::MethodNotAllowed,
        ApiError::BodyTooSlow,
        ApiError::HeadTooSlow,
        ApiError::BodyTooLarge(limits::BODY_BYTES_MAX),
        ApiError::MediaType("the body must be application/json"),
        ApiError::UriTooLong,
        ApiError::HeadersTooLarge,
        ApiError::TooManyConnections,
        ApiError::TooManyBatches,
        ApiError::TooManyLargeBodies,
        ApiError::Internal,
    ]);
    all.sort_by_key(|error| error.status().as_u16());
    all
}

/// What a client should know beside the words of the refusal.
const fn explained(error: &ApiError) -> &'static str {
    match error {
        ApiError::Command(error) => explained_command(error),
        ApiError::Malformed(_) => "something about the request as a whole; the message says what",
        ApiError::Unauthorized => "`X-API-Key` is missing, wrong or revoked",
        ApiError::TooManyRequests(_) => "`RATE_LIMIT`",
        ApiError::TooManyWrongKeys(_) => "more than 20 from one address; valid keys are accepted",
        ApiError::NoSuchRoute(_) => "the path is not known",
        ApiError::MethodNotAllowed => "the path is, the method is not",
        ApiError::BodyTooSlow | ApiError::HeadTooSlow => "see [Limits](limits.md#a-request)",
        ApiError::BodyTooLarge(_) => "of a batch 8 MiB",
        ApiError::MediaType(_) => "`Content-Type` is missing or another",
        ApiError::UriTooLong | ApiError::HeadersTooLarge => "see [Limits](limits.md#a-request)",
        ApiError::TooManyConnections => "all are busy, or 64 of one address (`CONNECTIONS_PER_ADDRESS_MAX`)",
        ApiError::TooManyBatches | ApiError::TooManyLargeBodies => "one key alone gets half of the permits",
        ApiError::Internal => "a fault of the service; the log has it under the `x-request-id`",
    }
}

const fn explained_command(error: &CommandError) -> &'static str {
    match error {
        CommandError::Invalid(_) => "a field breaks a rule; the message names both",
        CommandError::Forbidden(_) => "the key may only read, is not bound to that namespace, or is not the administrator's",
        CommandError::NotFound => "there is none, or it is in a namespace to which the key is not bound",
        CommandError::NoSuchKey => "of `DELETE /keys/{id}`",
        CommandError::NoSuchOperation => "of `/operations/{id}`",
        CommandError::WrongStatus { .. } => "the verb and the status are those of the request",
        CommandError::Expired { .. } => "register it again with `on_conflict: replace`",
        CommandError::StaleRevision { .. } => "`If-Match` named another one; nothing was changed",
        CommandError::Conflict(_) => "see [Keys and conflicts](../concepts/keys.md)",
        CommandError::IdTaken => "an `id` of your own",
        CommandError::InDelivery(_) => "of creates with `on_conflict`",
        CommandError::TooMany { .. } => "of `/timers/bulk` and `/timers/cancel`",
        CommandError::Searching => "one bulk request of a key at a time",
        CommandError::TooManySearches => "search less at once; narrow filters that no index serves",
        CommandError::TooManyOperations => "stop one, or wait",
        CommandError::TooManyStreams(_) => "8 of one key, 256 in all",
        CommandError::Unavailable(_) => "the database is away or full; repeating is safe",
        CommandError::Unknown(_) => "the answer of the database was lost",
        CommandError::Internal(_) => "stored data cannot be read; the log has the cause",
    }
}

/// The code as the dialect `v1` writes it, with its status where that is another; a dash where no request of it leads there.
fn in_v1(error: &ApiError) -> String {
    let answer = serde_json::to_value(v1::ErrorView::of(error, noon())).expect("JSON");
    let name = format!("`{}`", answer["error"].as_str().unwrap_or_default());
    let status = v1::status(error);
    if name == "`INTERNAL_ERROR`" && status != StatusCode::INTERNAL_SERVER_ERROR {
        return "–".to_owned();
    }
    if status == error.status() { name } else { format!("{name}, {}", status.as_u16()) }
}

pub(super) fn tables() -> String {
    let mut text = "## Codes of the envelope\n\n| code | means |\n|---|---|\n".to_owned();
    for (code, meaning) in CODES {
        writeln!(text, "| {} | {meaning} |", code as u8).expect("text");
    }
    text.push_str(
        "\n## Every refusal\n\n| status | code | message, for example | below `/api/v1` | remark |\n|---|---|---|---|---|\n",
    );
    for error in refusals() {
        let (status, message, v1) = (error.status(), cell(&error.message()), in_v1(&error));
        let code = Code::of(status) as u8;
        writeln!(text, "| {} | {code} | {message} | {v1} | {} |", status.as_u16(), explained(&error)).expect("text");
    }
    text
}
