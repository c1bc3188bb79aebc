//! What requests look like, for the OpenAPI document; its tests hold these types to what is really read.
#![expect(dead_code, reason = "these types are only described, never made")]

use utoipa::ToSchema;

use crate::schema::AnyJson;

#[derive(ToSchema)]
#[schema(
    as = V1Protocol,
    description = "`timer`: the POST carries `timerId`, `namespace`, `executeAt`, `attempt` and `payload`, and the answer is read as `{\"ok\": bool, \"nextExecuteAt\": …}`. \
    Every timer of this door is one. `webhook`, `nats` and `event` are timers of other doors: a plain POST, a NATS message, an event of the broker."
)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Timer,
    Webhook,
    Nats,
    Event,
}

/// How often and when a failed call is made again. Without one it is made once. Intervals are jittered by ±10 %.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = V1RetryPolicy)]
pub(super) struct RetryPolicy {
    /// 3 unless given.
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 1000, example = 3)]
    max_retries: Option<u32>,
    /// The pause after the first failure; 30s unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    initial_interval: Option<String>,
    /// By how much each pause is longer than the one before; 2 unless given.
    #[schema(value_type = f64, required = false, minimum = 1, maximum = 100, example = 2.0)]
    backoff_multiplier: Option<f64>,
    /// The longest pause; 10m unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "10m")]
    max_interval: Option<String>,
    /// No attempt starts later than this after the timer was due, or was last changed or tried again by its caller; no such limit
    /// unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "24h")]
    max_retry_attempts_duration: Option<String>,
}

/// A timer to be made.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = V1CreateTimer)]
pub(super) struct CreateTimer {
    /// Your own id of the timer, unique in its namespace: makes repeating the request safe.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    id: String,
    /// The scope in which ids are unique; `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    namespace: Option<String>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    group_id: Option<String>,
    /// When to call: RFC 3339 with any offset, kept to the microsecond. It must not be past; up to a minute ago counts as now.
    #[schema(format = DateTime, example = "2030-01-31T12:00:00Z")]
    execute_at: String,
    /// Whom to call: `http` or `https`, without credentials.
    #[schema(
        format = "uri",
        max_length = 2048,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://app.example.com/webhooks/timer"
    )]
    callback_url: String,
    /// Carried to the receiver exactly as given: at most 256 KiB, nested at most 64 deep.
    #[schema(required = false)]
    payload: AnyJson,
    retry_policy: Option<RetryPolicy>,
    /// How long the receiver may take: 100ms to 5m, 30s unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    callback_timeout: Option<String>,
    /// The same as a number of seconds; not together with `callbackTimeout`.
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 300)]
    callback_timeout_seconds: Option<u32>,
}

/// The timer that is meant.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = V1TimerSelection)]
pub(super) struct TimerSelection {
    /// `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    namespace: Option<String>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    group_id: Option<String>,
    /// The `id` that the timer was created with.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    timer_id: String,
}

/// What is to change about a timer; everything is optional.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = V1UpdateTimer)]
pub(super) struct UpdateTimer {
    /// The new instant; it must not be past, but up to a minute ago counts as now.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    execute_at: Option<String>,
    #[schema(value_type = String, required = false, format = "uri", max_length = 2048, pattern = "^[hH][tT][tT][pP][sS]?://[^/@]", example = "https://app.example.com/webhooks/timer")]
    callback_url: Option<String>,
    /// `null` clears it.
    #[schema(required = false)]
    payload: AnyJson,
    /// The new policy, whole; `null` clears it.
    retry_policy: Option<RetryPolicy>,
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    callback_timeout: Option<String>,
    /// Not together with `callbackTimeout`.
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 300)]
    callback_timeout_seconds: Option<u32>,
}

/// The timer that is meant, and what is to change about it.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = V1UpdateSelectedTimer)]
pub(super) struct UpdateSelectedTimer {
    /// `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "notifications")]
    namespace: Option<String>,
    /// The older name of `namespace`; not together with it.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    group_id: Option<String>,
    /// The `id` that the timer was created with.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "user-reminder-123")]
    timer_id: String,
    /// The new instant; it must not be past, but up to a minute ago counts as now.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    execute_at: Option<String>,
    #[schema(value_type = String, required = false, format = "uri", max_length = 2048, pattern = "^[hH][tT][tT][pP][sS]?://[^/@]", example = "https://app.example.com/webhooks/timer")]
    callback_url: Option<String>,
    /// `null` clears it.
    #[schema(required = false)]
    payload: AnyJson,
    /// The new policy, whole; `null` clears it.
    retry_policy: Option<RetryPolicy>,
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    callback_timeout: Option<String>,
    /// Not together with `callbackTimeout`.
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 300)]
    callback_timeout_seconds: Option<u32>,
}
