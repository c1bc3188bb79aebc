//! What requests look like, for the OpenAPI document. Requests are read by hand, so that every complaint names its field;
//! `openapi` tests hold these types to what is really read.
#![expect(dead_code, reason = "these types are only described, never made")]

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

/// Any JSON value.
pub(crate) struct AnyJson;

impl PartialSchema for AnyJson {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON value.")).build().into()
    }
}

impl ToSchema for AnyJson {}

/// Always `null`. Described as any value, because hardly a generator of clients knows the type `null`.
pub(crate) struct Nothing;

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Always `null`.")).build().into()
    }
}

impl ToSchema for Nothing {}

#[derive(ToSchema)]
#[schema(
    description = "Where a timer stands. `pending` → `executing` → `completed` or `failed`; `pending` → `canceled`; a retry goes back to `pending`."
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Pending,
    Executing,
    Completed,
    Failed,
    Canceled,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallbackType {
    Http,
    Nats,
    Event,
}

#[derive(ToSchema)]
#[schema(description = "What a key allows: `read`, or `write`, which includes reading.")]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rights {
    Read,
    Write,
}

/// A key for somebody.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKey {
    /// What to call it, for those who look at the list.
    #[schema(min_length = 1, max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: String,
    /// The namespaces that it opens; `null` for all of them.
    #[schema(required = true, min_items = 1, max_items = 100)]
    namespaces: Option<Vec<NamespaceName>>,
    rights: Rights,
}

/// The name of a namespace.
#[derive(ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
pub(crate) struct NamespaceName(String);

#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    CreatedAt,
    ExecuteAt,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    Asc,
    Desc,
}

#[derive(ToSchema)]
#[schema(
    description = "A crash can leave open whether a call was made. `at_least_once` makes it again; `at_most_once` lets the timer fail instead."
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    AtLeastOnce,
    AtMostOnce,
}

#[derive(ToSchema)]
#[schema(
    description = "For a key that is in use. `reject` answers with the timer that is there if this request means the same, and with 409 if not. \
    `replace` puts this request in its place, and begins anew if it had ended. `keep` gives a waiting timer only the new time, and leaves one that has ended alone."
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnConflict {
    Reject,
    Replace,
    Keep,
}

/// Whom the timer calls.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum Callback {
    Http(HttpCallback),
    Nats(NatsCallback),
}

/// Whom the timer calls, as it is kept.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum CallbackConfig {
    Http(HttpCallback),
    Nats(NatsCallback),
    Event(EventCallback),
}

/// The event of a timer that came through the broker dialect, published there when it is due. It cannot be asked for over HTTP.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventCallback {
    pub r#type: EventType,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EventType {
    Event,
}

/// A POST to a URL.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpCallback {
    pub r#type: HttpType,
    /// `http` or `https`, without credentials.
    #[schema(
        format = "uri",
        max_length = 2048,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://api.example.com/webhook"
    )]
    pub url: String,
    /// Own headers of the call: at most 32, together at most 16 KiB. Names that the service or the connection sets
    /// (`Host`, `Content-Length`, `X-Timer-…`, `Webhook-…` and the like) are refused.
    pub headers: Option<Headers>,
    /// The body of the call, exactly as given: at most 256 KiB, nested at most 64 deep.
    #[schema(required = false)]
    pub payload: AnyJson,
    /// How long the receiver may take: 100ms to 5m, 30s unless given.
    #[schema(example = "30s")]
    pub timeout: Option<String>,
    /// `webhook` (unless given): any 2xx is success, the body of the answer is ignored. `timer`: the answer is read as
    /// `{"ok": bool, "nextExecuteAt": …}`.
    pub protocol: Option<Protocol>,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HttpType {
    Http,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Webhook,
    Timer,
}

/// A message on a NATS subject. Refused when no NATS server is configured.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NatsCallback {
    pub r#type: NatsType,
    /// A subject to publish on: no blanks, no wildcards.
    #[schema(min_length = 1, max_length = 255, pattern = "^[!-)+-=?-~]+$", example = "events.timer.triggered")]
    pub topic: String,
    /// Travels as the header `X-Timer-Key`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]*$", example = "user123")]
    pub key: Option<String>,
    /// Own headers of the message; rules as for HTTP, and none that begins with `Nats-`.
    pub headers: Option<Headers>,
    /// The body of the message, exactly as given: at most 256 KiB, nested at most 64 deep.
    #[schema(required = false)]
    pub payload: AnyJson,
    /// Whether a stream must have stored the message before it counts as delivered. Unless given, `false`: it is enough that
    /// the server has taken it.
    pub jetstream: Option<bool>,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NatsType {
    Nats,
}

/// Header names and their values.
pub(crate) struct Headers;

impl PartialSchema for Headers {
    fn schema() -> RefOr<Schema> {
        let value = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^[\t -~]*$")).max_length(Some(4096)).build();
        let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")).build();
        ObjectBuilder::new()
            .property_names(Some(Schema::from(name)))
            .additional_properties(Some(Schema::from(value)))
            .max_properties(Some(32))
            .build()
            .into()
    }
}

impl ToSchema for Headers {}

/// How often and when a failed call is made again. Without one it is made once. Intervals are jittered by ±10 %.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryPolicy {
    /// 3 unless given.
    #[schema(minimum = 0, maximum = 1000, example = 5)]
    pub max_retries: Option<u32>,
    /// The pause after the first failure; 30s unless given.
    #[schema(example = "10s")]
    pub initial_interval: Option<String>,
    /// By how much each pause is longer than the one before; 2 unless given.
    #[schema(minimum = 1, maximum = 100, example = 2.0)]
    pub backoff_multiplier: Option<f64>,
    /// The longest pause; 10m unless given.
    #[schema(example = "10m")]
    pub max_interval: Option<String>,
    /// No attempt starts later than this after the timer was due, or was last changed or tried again by its caller; no such limit
    /// unless given.
    #[schema(example = "1d")]
    pub max_duration: Option<String>,
}

/// A timer to be made, in the long or the short form.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum CreateTimer {
    At(CreateTimerAt),
    After(CreateTimerAfter),
    Countdown(CreateCountdown),
}

/// The long form with an instant.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTimerAt {
    /// When to call, RFC 3339 with any offset; kept to the microsecond. At least `MIN_DELAY` ahead; where that is not configured, up to a minute ago counts as now.
    #[schema(format = DateTime, example = "2030-01-31T12:00:00Z")]
    pub execute_at: String,
    pub callback: Callback,
    /// The scope in which keys are unique; `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "default")]
    pub namespace: Option<String>,
    /// Your own id of the timer: makes repeating the request safe.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-456")]
    pub key: Option<String>,
    /// Only together with `key`; `reject` unless given.
    #[schema(value_type = OnConflict, required = false)]
    pub on_conflict: Option<OnConflict>,
    /// Anything, kept and returned exactly as given: at most 64 KiB, nested at most 64 deep.
    #[schema(required = false)]
    pub metadata: AnyJson,
    pub retry_policy: Option<RetryPolicy>,
    /// `at_least_once` unless given.
    #[schema(value_type = Delivery, required = false)]
    pub delivery: Option<Delivery>,
    /// Carried to the call and the logs.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "req-7f3a")]
    pub correlation_id: Option<String>,
}

/// The long form with a delay.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTimerAfter {
    /// How long from now: `90s`, `1h30m` or ISO 8601 (`PT15M`). At least `MIN_DELAY`, where that is configured.
    #[schema(pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h30m")]
    pub delay: String,
    pub callback: Callback,
    /// The scope in which keys are unique; `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "default")]
    pub namespace: Option<String>,
    /// Your own id of the timer: makes repeating the request safe.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-456")]
    pub key: Option<String>,
    /// Only together with `key`; `reject` unless given.
    #[schema(value_type = OnConflict, required = false)]
    pub on_conflict: Option<OnConflict>,
    /// Anything, kept and returned exactly as given: at most 64 KiB, nested at most 64 deep.
    #[schema(required = false)]
    pub metadata: AnyJson,
    pub retry_policy: Option<RetryPolicy>,
    /// `at_least_once` unless given.
    #[schema(value_type = Delivery, required = false)]
    pub delivery: Option<Delivery>,
    /// Carried to the call and the logs.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "req-7f3a")]
    pub correlation_id: Option<String>,
}

/// The short form: a countdown and a URL, to whose path the id of the timer is appended. Any of the three numbers, together
/// at least one second.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateCountdown {
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 1)]
    pub hours: Option<u32>,
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 30)]
    pub minutes: Option<u32>,
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 0)]
    pub seconds: Option<u32>,
    /// `http` or `https`, without credentials.
    #[schema(
        format = "uri",
        max_length = 2011,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://api.example.com/done"
    )]
    pub url: String,
}

/// Many timers to be made at once.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTimers {
    /// Each in the long or the short form.
    #[schema(min_items = 1, max_items = 1000)]
    pub timers: Vec<CreateTimer>,
}

/// Which timers are to be canceled: those for which everything holds that is said here. At least one condition is needed.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelTimers {
    /// Only timers of this namespace.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "default")]
    pub namespace: Option<String>,
    /// Nothing else can be canceled: say it to mean all of them.
    #[schema(value_type = PendingStatus, required = false)]
    pub status: Option<PendingStatus>,
    /// Only timers whose key begins with this.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-")]
    pub key_prefix: Option<String>,
    /// Only timers whose metadata is an object with all of these members, written in the same way: blanks mean nothing, but `1`
    /// is not `1.0`. At most 64 KiB, nested at most 64 deep.
    #[schema(value_type = Members, required = false)]
    pub metadata: Option<Members>,
    /// If more timers match than this, none of them is canceled.
    #[schema(minimum = 1, maximum = 10000, example = 100)]
    pub expected_max: u32,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PendingStatus {
    Pending,
}

/// Members of an object, with any values.
pub(crate) struct Members;

impl PartialSchema for Members {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("Members of an object, with any values; at least one."))
            .additional_properties(Some(AnyJson::schema()))
            .min_properties(Some(1))
            .examples([serde_json::json!({"owner": "ada"})])
            .build()
            .into()
    }
}

impl ToSchema for Members {}

/// What is to change about a timer; everything is optional.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateTimer {
    /// The new instant; not together with `delay`.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    pub execute_at: Option<String>,
    /// The new time, from now; not together with `execute_at`.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h30m")]
    pub delay: Option<String>,
    /// The new callback, whole.
    #[schema(value_type = Callback, required = false)]
    pub callback: Option<Callback>,
    /// `null` clears it.
    #[schema(required = false)]
    pub metadata: AnyJson,
    /// `null` clears it.
    pub retry_policy: Option<RetryPolicy>,
    #[schema(value_type = Delivery, required = false)]
    pub delivery: Option<Delivery>,
    /// `null` clears it.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub correlation_id: Option<String>,
}
