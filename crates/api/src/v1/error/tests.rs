use domain::Status;
use serde_json::{Value, json};

use super::*;
use crate::rig::NOW;

#[test]
fn every_refusal_has_a_status_a_code_and_a_sentence() {
    let command = ApiError::Command;
    let met = |verb| command(CommandError::WrongStatus { verb, status: Status::Completed });
    let of_status = json!({"status": "completed"});
    for (error, status_expected, code, message, details) in [
        (
            Invalid::new("executeAt", "must be in the future").into(),
            400,
            "VALIDATION_ERROR",
            "executeAt must be in the future",
            json!({"field": "executeAt", "rule": "must be in the future"}),
        ),
        (ApiError::Malformed("the body is missing".to_owned()), 400, "MALFORMED_REQUEST", "the body is missing", json!({})),
        (ApiError::Unauthorized, 401, "UNAUTHORIZED", "unauthorized", json!({})),
        (command(CommandError::Forbidden("this key may only read")), 403, "FORBIDDEN", "this key may only read", json!({})),
        (
            ApiError::TooManyRequests(std::time::Duration::from_millis(1)),
            429,
            "TOO_MANY_REQUESTS",
            "too many requests with this key: see the Retry-After header",
            json!({}),
        ),
        (command(CommandError::NotFound), 404, "TIMER_NOT_FOUND", "timer not found", json!({})),
        (ApiError::NoSuchRoute(crate::BasePath::default()), 404, "ROUTE_NOT_FOUND", "no such route: see /docs", json!({})),
        (ApiError::MethodNotAllowed, 405, "METHOD_NOT_ALLOWED", "method not allowed: see the Allow header", json!({})),
        (ApiError::BodyTooSlow, 408, "REQUEST_TIMEOUT", "the body did not arrive in time", json!({})),
        (ApiError::HeadTooSlow, 408, "REQUEST_TIMEOUT", "the headers did not arrive in time", json!({})),
        (met(Verb::Cancel), 409, "TIMER_NOT_PENDING", "cannot delete timer with status 'completed'", of_status.clone()),
        (met(Verb::Update), 409, "TIMER_NOT_PENDING", "cannot update timer with status 'completed'", of_status),
        (
            ApiError::BodyTooLarge(crate::BODY_BYTES_MAX),
            413,
            "PAYLOAD_TOO_LARGE",
            "the body must not be larger than 1 MiB",
            json!({}),
        ),
        (
            ApiError::TooManyLargeBodies,
            503,
            "SERVICE_UNAVAILABLE",
            "too many large bodies at the same time, and nothing was changed: try again later",
            json!({}),
        ),
        (ApiError::UriTooLong, 414, "URI_TOO_LONG", "the URI must not be longer than 8 KiB", json!({})),
        (ApiError::MediaType("not this"), 415, "UNSUPPORTED_MEDIA_TYPE", "not this", json!({})),
        (
            ApiError::HeadersTooLarge,
            431,
            "HEADERS_TOO_LARGE",
            "the headers must not be more than 64 or larger than 16 KiB together",
            json!({}),
        ),
        (ApiError::Internal, 500, "INTERNAL_ERROR", "internal error", json!({})),
        (ApiError::TooManyConnections, 503, "SERVICE_UNAVAILABLE", "too many connections: try again later", json!({})),
    ] {
        let expected = json!({"error": code, "message": message, "details": details, "timestamp": "2030-01-01T00:00:00Z"});
        assert_eq!(serde_json::to_value(ErrorView::of(&error, NOW)).unwrap(), expected);
        assert_eq!(status(&error).as_u16(), status_expected, "{code}");
        let described = crate::openapi::document()["components"]["schemas"]["V1ErrorCode"]["enum"].clone();
        assert!(described.as_array().unwrap().contains(&Value::from(code)), "{code}");
    }
}
