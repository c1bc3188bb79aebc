//! Values in requests and answers, for the OpenAPI document, where they are read or written by crates that know nothing of it.
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
    description = "Where a timer stands. `pending` → `executing` → `completed`, `failed` or `expired`; `pending` → `canceled`; a retry goes back to `pending`."
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Pending,
    Executing,
    Completed,
    Failed,
    Canceled,
    Expired,
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
    `replace` puts this request in its place, and begins anew if it had ended. `keep` gives a waiting timer only the new time, and leaves one that has ended alone; `earliest` and `latest` do so only where the new time is \
    earlier or later. `postpone`, which needs `delay`, lets a waiting timer be due that long from now, up to its `postpone_max`, and begins anew with this \
    request if it had ended; a timer that is being delivered at this moment is a 409."
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnConflict {
    Reject,
    Replace,
    Keep,
    Postpone,
    Earliest,
    Latest,
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
    /// No attempt starts later than this after the timer was due, or was last changed or tried again by its client; no such limit
    /// unless given.
    #[schema(example = "1d")]
    pub max_duration: Option<String>,
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

#[derive(ToSchema)]
#[schema(
    description = "`timer`: the POST carries `timerId`, `namespace`, `executeAt`, `attempt` and `payload`, and the answer is read as `{\"ok\": bool, \"nextExecuteAt\": …}`. \
    Every timer of this dialect is one. `webhook`, `nats` and `event` are timers of other dialects: a plain POST, a NATS message, an event of the broker."
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum V1Protocol {
    Timer,
    Webhook,
    Nats,
    Event,
}
