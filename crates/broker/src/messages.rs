//! The two messages of the consumer, as texts: what a command may look like, and what an event looks like. Pure.

use std::borrow::Cow;

use commands::{EarliestAllowed, NewTimerRequest, Target};
use domain::{
    CorrelationId, FromMember, Given, Invalid, JsonText, Key, MemberNames, Namespace, OnConflict, RequestedTime, Timer,
    Timestamp, names_of, read_object,
};
use serde::{Deserialize, Serialize};
use serde_json::{Number, value::RawValue};

/// No command needs more; what is larger is not read at all.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

const SCHEDULE_TIMER: &str = "ScheduleTimer";
const DUE_TIME_REACHED: &str = "DueTimeReached";

/// The command: tell `tenant` at `due_at` that the time of `service_call` has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleTimer {
    pub tenant: Namespace,
    pub service_call: Key,
    pub due_at: Timestamp,
    pub correlation_id: Option<CorrelationId>,
}

impl ScheduleTimer {
    /// Reads a command in its envelope, or the bare payload.
    ///
    /// What the work depends on must be right. Everything else may be missing, and unknown fields mean nothing here:
    /// envelopes pass through many hands that add to them. An optional field that is `null` is missing, because that is how
    /// half of all serializers write it.
    pub fn parse(body: &[u8]) -> Result<Self, Invalid> {
        if body.len() > COMMAND_BYTES_MAX {
            return Err(Invalid::new("message", format!("must not be longer than {COMMAND_BYTES_MAX} bytes")));
        }
        let text = std::str::from_utf8(body).map_err(|_| Invalid::new("message", "must be UTF-8"))?;
        let json = JsonText::parse("message", text, COMMAND_BYTES_MAX)?;
        let text = json.as_str();
        if !text.starts_with('{') {
            return Err(Invalid::new("message", "must be a JSON object"));
        }
        match read_object::<CommandEnvelope<'_>>(text) {
            Some(envelope) if envelope.is_one() => envelope.into_command(),
            // A name that only the envelope has may stand twice in a bare payload, where it means nothing.
            None if !is_bare(text) => Err(given_twice::<CommandEnvelope<'_>>(text)),
            _ => read_object::<BareCommand<'_>>(text).ok_or_else(|| given_twice::<BareCommand<'_>>(text))?.into_command(),
        }
    }

    /// The timer that it asks for. A time that is past is due at once, because the message may have waited in the broker: every
    /// command leads to an event.
    pub fn into_request(self) -> NewTimerRequest {
        NewTimerRequest {
            earliest_allowed: EarliestAllowed::Any,
            namespace: self.tenant,
            key: Some(self.service_call),
            on_conflict: OnConflict::Keep,
            correlation_id: self.correlation_id,
            ..NewTimerRequest::new(RequestedTime::At(self.due_at), Target::Event)
        }
    }
}

/// A command in its envelope, as far as it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct CommandEnvelope<'a> {
    #[serde(default)]
    r#type: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    id: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    timestamp_ms: Given<'a, AnyNumber>,
    #[serde(default)]
    payload: Given<'a, Payload<'a>>,
    #[serde(default)]
    tenant_id: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    correlation_id: Given<'a, Cow<'a, str>>,
}

/// What a command says in its envelope.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Payload<'a> {
    #[serde(default)]
    tenant_id: Given<'a, Tenant>,
    #[serde(default)]
    service_call_id: Given<'a, Key>,
    #[serde(default)]
    due_at: Given<'a, Timestamp>,
}

/// What it says without one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct BareCommand<'a> {
    #[serde(default)]
    tenant_id: Given<'a, Tenant>,
    #[serde(default)]
    service_call_id: Given<'a, Key>,
    #[serde(default)]
    due_at: Given<'a, Timestamp>,
    #[serde(default)]
    correlation_id: Given<'a, Cow<'a, str>>,
}

/// What tells an envelope from a bare payload.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Marks<'a> {
    #[serde(default)]
    r#type: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    payload: Given<'a, Payload<'a>>,
}

fn is_bare(text: &str) -> bool {
    read_object::<Marks<'_>>(text).is_some_and(|marks| !marks.r#type.is_given() && !marks.payload.is_given())
}

/// What is wrong with an object that could not be read: two members of the same name, of which either may be meant.
fn given_twice<'a, T: Deserialize<'a>>(text: &'a str) -> Invalid {
    let names = MemberNames::in_text(text).ok();
    let name = names.and_then(|names| names.first_twice(names_of::<T>()));
    name.map_or_else(
        || Invalid::new("message", "must not name a field twice"),
        |name| Invalid::new(name, "must not be given twice"),
    )
}

impl CommandEnvelope<'_> {
    fn is_one(&self) -> bool {
        self.r#type.is_given() || self.payload.is_given()
    }

    fn into_command(self) -> Result<ScheduleTimer, Invalid> {
        match self.r#type.read_unless_null("type")? {
            Some(kind) if kind == SCHEDULE_TIMER => {}
            Some(_) => return Err(Invalid::new("type", format!("must be {SCHEDULE_TIMER}"))),
            None => return Err(Invalid::new("type", format!("is required: {SCHEDULE_TIMER}"))),
        }
        // They mean nothing here; but one of the wrong type says that the sender means something else.
        self.id.read_unless_null("id")?;
        self.timestamp_ms.read_unless_null("timestampMs")?;
        let Payload { tenant_id, service_call_id, due_at } = required(&self.payload, "payload")?;
        let command = command(&tenant_id, &service_call_id, &due_at).map_err(|invalid| invalid.within("payload"))?;
        if self.tenant_id.read_unless_null("tenantId")?.is_some_and(|tenant| tenant != command.tenant.as_str()) {
            return Err(Invalid::new("tenantId", "must be the same in the envelope and in the payload"));
        }
        Ok(ScheduleTimer { correlation_id: correlation_id(&self.correlation_id)?, ..command })
    }
}

impl BareCommand<'_> {
    fn into_command(self) -> Result<ScheduleTimer, Invalid> {
        let command = command(&self.tenant_id, &self.service_call_id, &self.due_at)?;
        Ok(ScheduleTimer { correlation_id: correlation_id(&self.correlation_id)?, ..command })
    }
}

fn command(
    tenant_id: &Given<'_, Tenant>,
    service_call_id: &Given<'_, Key>,
    due_at: &Given<'_, Timestamp>,
) -> Result<ScheduleTimer, Invalid> {
    let service_call = required(service_call_id, "serviceCallId")?;
    let Tenant(tenant) = required(tenant_id, "tenantId")?;
    let due_at = required(due_at, "dueAt")?;
    if due_at < Timestamp::from_micros(0) {
        return Err(Invalid::new("dueAt", "must not lie before 1970"));
    }
    Ok(ScheduleTimer { tenant, service_call, due_at, correlation_id: None })
}

/// A member that must be there, and not `null`.
fn required<'a, T: FromMember<'a>>(member: &Given<'a, T>, name: &str) -> Result<T, Invalid> {
    member.read_unless_null(name)?.ok_or_else(|| Invalid::new(name, "is required"))
}

impl<'a> FromMember<'a> for Payload<'a> {
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid> {
        if !raw.get().starts_with('{') {
            return Err(Invalid::new(name, "must be a JSON object"));
        }
        read_object(raw.get()).ok_or_else(|| given_twice::<Self>(raw.get()).within(name))
    }
}

struct AnyNumber;

impl FromMember<'_> for AnyNumber {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        match serde_json::from_str::<Number>(raw.get()) {
            Ok(_) => Ok(Self),
            Err(_) => Err(Invalid::new(name, "must be a number")),
        }
    }
}

/// Whether this can stand alone between two dots of a subject: events are addressed by their tenant.
pub(crate) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e) && !matches!(byte, b'.' | b'*' | b'>');
    !text.is_empty() && !text.starts_with('$') && text.bytes().all(is_plain)
}

/// A tenant to which events can be addressed.
struct Tenant(Namespace);

impl FromMember<'_> for Tenant {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let tenant = Namespace::from_member(name, raw)?;
        if !is_token(tenant.as_str()) {
            let rule =
                "must be printable ASCII without blanks and without . * >, and must not start with $: it is part of a subject";
            return Err(Invalid::new(name, rule));
        }
        Ok(Self(tenant))
    }
}

/// It concerns the whole message, so it stands outside: in the envelope, or in what comes without one.
fn correlation_id<'a>(member: &Given<'a, Cow<'a, str>>) -> Result<Option<CorrelationId>, Invalid> {
    let text = member.read_unless_null("correlationId")?.filter(|text| !text.is_empty());
    text.map(|text| CorrelationId::parse(&text).map_err(|invalid| invalid.named("correlationId"))).transpose()
}

/// A refusal of the use cases in the words of the message.
pub(crate) fn in_words_of_the_command(refusal: Invalid) -> Invalid {
    let field = match refusal.field.as_str() {
        "execute_at" => "dueAt",
        "namespace" => "tenantId",
        "key" => "serviceCallId",
        "correlation_id" => "correlationId",
        other => other,
    };
    Invalid::new(field, refusal.rule)
}

/// The event in its envelope, in the order in which its fields are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    id: &'a str,
    r#type: &'static str,
    tenant_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    timestamp_ms: i64,
    payload: DueTimeReached<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DueTimeReached<'a> {
    tenant_id: &'a str,
    service_call_id: &'a str,
    reached_at: Timestamp,
}

/// The event of a due timer. Its id is the same however often one due time is announced.
pub fn due_time_reached(timer: &Timer, now: Timestamp) -> String {
    let definition = &timer.definition;
    let own_id = definition.id.to_string();
    let tenant_id = definition.namespace.as_str();
    let event = Envelope {
        id: &timer.webhook_id(),
        r#type: DUE_TIME_REACHED,
        tenant_id,
        correlation_id: definition.correlation_id.as_ref().map(CorrelationId::as_str),
        timestamp_ms: now.as_micros().div_euclid(1000),
        payload: DueTimeReached {
            tenant_id,
            // The consumer makes no timer without a key. One that came here in another way is at least told by its id.
            service_call_id: definition.key.as_ref().map_or(&own_id, Key::as_str),
            reached_at: now,
        },
    };
    // Texts and numbers only: nothing in here can fail to be written.
    serde_json::to_string(&event).unwrap_or_default()
}

#[cfg(test)]
mod tests;
