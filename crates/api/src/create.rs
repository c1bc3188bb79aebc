//! `POST /timers`: registers a timer, in the long form or in the short one.

use commands::{CommandError, EarliestAllowed, NewTimerRequest, Outcome, Target};
use domain::{
    AnyJson, Callback, CallbackUrl, CorrelationId, Countdown, Delivery, Given, Group, Invalid, Json, Key, Namespace, OnConflict,
    Options, RequestedTime, RetryPolicy, Span, TimerId, Timestamp, Whole, limits, names_of, read_object,
};
use serde::Deserialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::OneOfBuilder},
};

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    request, timing,
    trace::Traced,
    view::TimerView,
};

/// A timer to be made, in the long or the short form.
pub(crate) enum CreateTimer {}

/// The long form.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct LongForm<'a> {
    /// When to call, RFC 3339 with any offset; kept to the microsecond. At least `MIN_DELAY` ahead; where that is not configured, up to a minute ago counts as now.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    execute_at: Given<'a, Timestamp>,
    /// How long from now: `90s`, `1h30m` or ISO 8601 (`PT15M`). At least `MIN_DELAY`, where that is configured.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h30m")]
    #[serde(default)]
    delay: Given<'a, Span>,
    #[schema(value_type = Callback, required = true)]
    #[serde(default)]
    callback: Given<'a, Callback>,
    /// The scope in which keys are unique; `default` unless given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "default")]
    #[serde(default)]
    namespace: Given<'a, Namespace>,
    /// Your own id of the timer: makes repeating the request safe.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-456")]
    #[serde(default)]
    key: Given<'a, Key>,
    /// What the timer belongs to, inside its namespace: timers of a group are counted and canceled together.
    #[schema(value_type = Option<String>, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "campaign-7")]
    #[serde(default)]
    group: Given<'a, Group>,
    /// An id of your own making, a UUID of version 7: makes repeating the request safe, too. Not together with `key`.
    #[schema(value_type = String, required = false, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$", example = "01890a5d-ac96-774b-bcce-b302099a8057")]
    #[serde(default)]
    id: Given<'a, TimerId>,
    /// Only together with `key`; `reject` unless given.
    #[schema(value_type = OnConflict, required = false)]
    #[serde(default)]
    on_conflict: Given<'a, OnConflict>,
    /// Anything, kept and returned exactly as given: at most 64 KiB, nested at most 64 deep.
    #[schema(value_type = AnyJson, required = false)]
    #[serde(default)]
    metadata: Given<'a, Json<{ limits::METADATA_BYTES_MAX }>>,
    #[schema(value_type = Option<RetryPolicy>, required = false)]
    #[serde(default)]
    retry_policy: Given<'a, RetryPolicy>,
    /// `at_least_once` unless given.
    #[schema(value_type = Delivery, required = false)]
    #[serde(default)]
    delivery: Given<'a, Delivery>,
    /// Carried to the call and the logs.
    #[schema(value_type = Option<String>, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "req-7f3a")]
    #[serde(default)]
    correlation_id: Given<'a, CorrelationId>,
    /// No attempt starts at or after this instant: the timer ends as `expired` instead. Later than the due time; not together with `expires_after`.
    #[schema(value_type = Option<String>, required = false, format = DateTime, example = "2030-01-31T12:30:00Z")]
    #[serde(default)]
    expires_at: Given<'a, Timestamp>,
    /// The same, counted from the due time, with which it moves. Not together with `expires_at`.
    #[schema(value_type = Option<String>, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30m")]
    #[serde(default)]
    expires_after: Given<'a, Span>,
    /// How long after its first registration `on_conflict: postpone` and `ping` may postpone it to at most. No limit unless given.
    #[schema(value_type = Option<String>, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "1h")]
    #[serde(default)]
    postpone_max: Given<'a, Span>,
    /// Called once the timer has completed, by a timer of its own. Its payload is an object with `id`, `namespace`, `key`, `group`, `status`, `execute_at`, `executed_at`, `attempt` and `last_error` of this timer, and as `payload` what is given here. At most 16 KiB.
    #[schema(value_type = Option<Callback>, required = false)]
    #[serde(default)]
    on_success: Given<'a, Callback>,
    /// The same once the timer has failed or expired.
    #[schema(value_type = Option<Callback>, required = false)]
    #[serde(default)]
    on_failure: Given<'a, Callback>,
}

/// The short form: a countdown and a URL, to whose path the id of the timer is appended. Any of the three numbers, together
/// at least one second.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
#[schema(as = CreateCountdown)]
pub(crate) struct ShortForm<'a> {
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 1)]
    #[serde(default)]
    hours: Given<'a, AnyWhole>,
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 30)]
    #[serde(default)]
    minutes: Given<'a, AnyWhole>,
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 4294967295u32, example = 0)]
    #[serde(default)]
    seconds: Given<'a, AnyWhole>,
    /// `http` or `https`, without credentials.
    #[schema(
        value_type = String,
        required = true,
        format = "uri",
        max_length = 2011,
        pattern = "^[hH][tT][tT][pP][sS]?://[^/@]",
        example = "https://api.example.com/done"
    )]
    #[serde(default)]
    url: Given<'a, CallbackUrl>,
}

type AnyWhole = Whole<0, { u32::MAX }>;

/// Create a timer
///
/// Registers one call at one time. The answer comes once the timer is on disk.
///
/// Two forms: the long one with `execute_at` or `delay` and a `callback`, and the short one with `hours`, `minutes`,
/// `seconds` and a `url`, to which the id of the timer is appended.
///
/// With a `key` or an `id`, repeating a create is safe: the same content is the same timer and fires once.
#[utoipa::path(
    post, path = "/timers", tag = "timers", operation_id = "createTimer", security(("ApiKey" = [])),
    request_body(content = CreateTimer, description = "The timer that is wanted, in the long or the short form."),
    responses(
        (status = 201, description = "The timer is registered: `timer created successfully`.", body = Envelope<TimerView>, links(
            ("read" = (operation_id = "getTimer", parameters(("id" = "$response.body#/data/id")))),
            ("change" = (operation_id = "updateTimer", parameters(("id" = "$response.body#/data/id")))),
            ("cancel" = (operation_id = "cancelTimer", parameters(("id" = "$response.body#/data/id")))),
            ("fire" = (operation_id = "fireTimer", parameters(("id" = "$response.body#/data/id")))),
            ("retry" = (operation_id = "retryTimer", parameters(("id" = "$response.body#/data/id")))),
            ("ping" = (operation_id = "pingTimer", parameters(("id" = "$response.body#/data/id")))),
            ("attempts" = (operation_id = "listAttempts", parameters(("id" = "$response.body#/data/id")))),
        )),
        (status = 200, description = "The key or the id was there: `timer already exists` when nothing was changed, `timer replaced successfully` when it took the new content or time.", body = Envelope<TimerView>),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "The key or the id is taken by a timer with other content.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn create(
    Writing(commands): Writing,
    Traced(trace): Traced,
    body: JsonBody,
) -> Result<Answer<TimerView>, ApiError> {
    let mut request = parse("the body", &body.text)?;
    request.options.trace = trace;
    let form = Form::of(&request);
    let outcome = commands.create(request).await;
    Ok(answer(outcome, form, commands.clock.now())?)
}

/// In which of its forms a request came: what is wrong with it is said in the words of that form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Long,
    Short,
}

impl Form {
    pub(crate) const fn of(request: &NewTimerRequest) -> Self {
        match request.target {
            Target::UrlWithId(_) => Self::Short,
            Target::Callback(_) | Target::Event => Self::Long,
        }
    }
}

/// The answer to a client that wanted a timer in this form.
pub(crate) fn answer(
    outcome: Result<Outcome, CommandError>,
    form: Form,
    now: Timestamp,
) -> Result<Answer<TimerView>, CommandError> {
    let outcome = outcome.map_err(|error| match form {
        Form::Long => error,
        Form::Short => in_short_words(error),
    })?;
    let revision = outcome.timer().revision;
    let answer = match outcome {
        Outcome::Created(timer) => Answer::created("timer created successfully", TimerView::of(timer, now)),
        Outcome::Existing(timer) => Answer::ok("timer already exists", TimerView::of(timer, now)),
        Outcome::Replaced(timer) => Answer::ok("timer replaced successfully", TimerView::of(timer, now)),
    };
    Ok(answer.with_revision(revision))
}

/// Reads a request in either form, from a text that complaints call `subject`.
pub(crate) fn parse(subject: &str, text: &str) -> Result<NewTimerRequest, ApiError> {
    let long = || read_object(text).map(LongForm::into_request);
    let short = || read_object(text).map(ShortForm::into_request);
    if let Some(request) = if begins_short(text) { short().or_else(long) } else { long().or_else(short) } {
        return Ok(request?);
    }
    let (long, short) = (names_of::<LongForm<'_>>(), names_of::<ShortForm<'_>>());
    let names = request::names_in(subject, text, &[long, short])?;
    match (names.first_of(long), names.first_of(short)) {
        (Some(long), Some(short)) => {
            Err(Invalid::new(short, format!("belongs to the short form and must not be given together with {long}")).into())
        }
        _ => Err(ApiError::Internal),
    }
}

/// Whether the first name is one of the short form, and written without escapes: then it is tried first. A wrong guess costs time
/// and nothing else.
fn begins_short(text: &str) -> bool {
    let Some(name) = text.trim_ascii_start().strip_prefix('{').and_then(|text| text.trim_ascii_start().strip_prefix('"')) else {
        return false;
    };
    names_of::<ShortForm<'_>>().iter().any(|known| name.strip_prefix(known).is_some_and(|rest| rest.starts_with('"')))
}

impl LongForm<'_> {
    fn into_request(self) -> Result<NewTimerRequest, Invalid> {
        let asked = timing::requested(&self.execute_at, &self.delay)?;
        let asked = asked.ok_or_else(|| Invalid::new("execute_at", "or delay is required"))?;
        let callback = self.callback.required("callback")?;
        let key = self.key.read("key")?;
        let id = self.id.read("id")?;
        if id.is_some() && key.is_some() {
            return Err(Invalid::new("id", "must not be given together with key"));
        }
        if self.on_conflict.is_given() && key.is_none() {
            return Err(Invalid::new("on_conflict", "must not be given without key"));
        }
        let on_conflict = self.on_conflict.read("on_conflict")?.unwrap_or_default();
        if on_conflict == OnConflict::Postpone && !matches!(asked, RequestedTime::After(_)) {
            return Err(Invalid::new("delay", "is required with on_conflict postpone"));
        }
        Ok(NewTimerRequest {
            asked,
            earliest_allowed: EarliestAllowed::MinDelay,
            target: Target::Callback(callback),
            namespace: self.namespace.read("namespace")?.unwrap_or_default(),
            key,
            id,
            group: self.group.read_unless_null("group")?,
            on_conflict,
            // `null` says the same as nothing where an update could clear the field, and is refused elsewhere.
            metadata: self.metadata.read_unless_null("metadata")?.map(Into::into),
            correlation_id: self.correlation_id.read_unless_null("correlation_id")?,
            retry_policy: self.retry_policy.read_unless_null("retry_policy")?,
            delivery: self.delivery.read("delivery")?.unwrap_or_default(),
            options: Options {
                expiry: timing::expiry(&self.expires_at, &self.expires_after)?.set(),
                postpone_max: self.postpone_max.read_unless_null("postpone_max")?,
                on_success: self.on_success.read_unless_null("on_success")?.map(Box::new),
                on_failure: self.on_failure.read_unless_null("on_failure")?.map(Box::new),
                trace: None,
            },
        })
    }
}

impl ShortForm<'_> {
    fn into_request(self) -> Result<NewTimerRequest, Invalid> {
        let whole = |member: &Given<'_, AnyWhole>, name| Ok(member.read(name)?.map_or(0, |Whole(number)| number));
        let countdown = Countdown {
            hours: whole(&self.hours, "hours")?,
            minutes: whole(&self.minutes, "minutes")?,
            seconds: whole(&self.seconds, "seconds")?,
        };
        let span = countdown.span()?;
        let target = Target::UrlWithId(self.url.required("url")?);
        // A countdown has a least length of its own: one second.
        Ok(NewTimerRequest { earliest_allowed: EarliestAllowed::Now, ..NewTimerRequest::new(RequestedTime::After(span), target) })
    }
}

/// Described as three forms: of `execute_at` and `delay`, the long one has exactly one.
impl PartialSchema for CreateTimer {
    fn schema() -> RefOr<Schema> {
        let form = |name: &str| Ref::from_schema_name(name);
        let forms = OneOfBuilder::new().item(form("CreateTimerAt")).item(form("CreateTimerAfter")).item(form("CreateCountdown"));
        Schema::OneOf(forms.description(Some("A timer to be made, in the long or the short form.")).build()).into()
    }
}

impl ToSchema for CreateTimer {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(("CreateTimerAt".to_owned(), long_form("The long form with an instant.", "execute_at", "delay")));
        schemas.push(("CreateTimerAfter".to_owned(), long_form("The long form with a delay.", "delay", "execute_at")));
        LongForm::schemas(schemas);
        schemas.push(("CreateCountdown".to_owned(), ShortForm::schema()));
    }
}

fn long_form(description: &str, required: &str, left_out: &str) -> RefOr<Schema> {
    let mut schema = LongForm::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.description = Some(description.to_owned());
        object.properties.shift_remove(left_out);
        object.required.insert(0, required.to_owned());
    }
    schema
}

/// A rule that is checked behind the dialect names the fields of the long form; a client that used the short one knows its fields only.
fn in_short_words(error: CommandError) -> CommandError {
    let CommandError::Invalid(Invalid { field, rule }) = error else { return error };
    let field = match field.as_str() {
        "delay" => "hours, minutes and seconds".to_owned(),
        "callback.url" => "url".to_owned(),
        _ => field,
    };
    CommandError::Invalid(Invalid { field, rule })
}

#[cfg(test)]
mod tests;
