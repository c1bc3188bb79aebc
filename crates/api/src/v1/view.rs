//! Timers as this dialect shows them.

use axum::response::Response;
use domain::{Endpoint, JsonText, Status, Timer, Timestamp};
use http::StatusCode;
use serde::Serialize;
use serde_json::Number;
use utoipa::ToSchema;

use super::{duration, policy::PolicyView};
use crate::envelope::json;

/// A timer. `status`, `attempt`, `lastError` and `protocol` are more than a request can say: how the timer stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = V1Timer)]
pub(super) struct TimerView {
    /// The id that its creator chose.
    #[schema(example = "user-reminder-123")]
    id: String,
    #[schema(example = "notifications")]
    namespace: String,
    /// The same as `namespace`, under its older name.
    #[schema(example = "notifications")]
    group_id: String,
    /// When it is due, in UTC.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T12:00:00Z")]
    execute_at: Timestamp,
    /// `null` for a timer of another dialect that does not call a URL.
    #[schema(required = true, example = "https://app.example.com/webhooks/timer")]
    callback_url: Option<String>,
    /// Exactly as it was given.
    #[schema(value_type = domain::AnyJson)]
    payload: Option<JsonText>,
    /// `null` when a failed call is not made again.
    #[schema(required = true)]
    retry_policy: Option<PolicyView>,
    /// How long the receiver may take; `null` for a timer of another dialect that does not call a URL.
    #[schema(required = true, example = "30s")]
    callback_timeout: Option<String>,
    /// The same as a number.
    #[schema(value_type = Option<f64>, required = true, example = 30)]
    callback_timeout_seconds: Option<Number>,
    /// How it speaks to its receiver: `timer`, unless it came through another dialect.
    #[schema(value_type = crate::schema::V1Protocol)]
    protocol: &'static str,
    status: Status,
    /// How many calls have been started for this due time.
    attempt: u32,
    /// Why the last call failed, if it did.
    #[schema(required = true)]
    last_error: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    updated_at: Timestamp,
    /// When its last call ended, if one has.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    executed_at: Option<Timestamp>,
}

impl TimerView {
    /// The answer that shows this timer.
    pub(super) fn answer(timer: Timer) -> Response {
        json(StatusCode::OK, &Self::of(timer))
    }

    fn of(timer: Timer) -> Self {
        let definition = &timer.definition;
        let http = match &definition.callback.endpoint {
            Endpoint::Http(http) => Some(http),
            _ => None,
        };
        Self {
            // Only timers with a key can be reached through this dialect.
            id: definition.key.as_ref().map_or_else(|| timer.id().to_string(), ToString::to_string),
            namespace: definition.namespace.to_string(),
            group_id: definition.namespace.to_string(),
            execute_at: timer.execute_at,
            callback_url: http.map(|http| http.url.as_str().to_owned()),
            payload: definition.callback.payload().cloned(),
            retry_policy: definition.retry_policy.as_ref().map(PolicyView::of),
            callback_timeout: http.map(|http| duration::written(http.timeout)),
            callback_timeout_seconds: http.and_then(|http| duration::seconds(http.timeout)),
            protocol: http.map_or(definition.callback.kind(), |http| http.protocol.as_str()),
            status: timer.status,
            attempt: timer.attempt,
            last_error: timer.last_error,
            created_at: timer.created_at,
            updated_at: timer.updated_at,
            executed_at: timer.executed_at,
        }
    }
}
