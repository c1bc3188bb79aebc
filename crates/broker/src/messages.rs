//! The two messages of the consumer, as texts: what a command may look like, and what an event looks like. Pure.

mod object;

use commands::{EarliestAllowed, NewTimerRequest, Target};
use domain::{CorrelationId, Invalid, JsonText, Key, Namespace, OnConflict, RequestedTime, Timer, Timestamp};
use serde::Serialize;

use object::Object;

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
        let message = Object::parse("message", json.as_str())?;
        let is_envelope = message.has("type") || message.has("payload");
        let command = if is_envelope { Self::in_envelope(&message) } else { Self::bare(&message) }?;
        // It concerns the whole message, so it stands outside: in the envelope, or in what comes without one.
        Ok(Self { correlation_id: correlation_id(&message)?, ..command })
    }

    fn in_envelope(envelope: &Object<'_>) -> Result<Self, Invalid> {
        match envelope.text("type")? {
            Some(kind) if kind == SCHEDULE_TIMER => {}
            Some(_) => return Err(Invalid::new("type", format!("must be {SCHEDULE_TIMER}"))),
            None => return Err(Invalid::new("type", format!("is required: {SCHEDULE_TIMER}"))),
        }
        // Nobody here needs them; but one of the wrong type says that the sender means something else.
        envelope.text("id")?;
        envelope.number("timestampMs")?;
        let payload = envelope.object("payload")?.ok_or_else(|| Invalid::new("payload", "is required"))?;
        let command = Self::bare(&payload).map_err(|invalid| invalid.within("payload"))?;
        if envelope.text("tenantId")?.is_some_and(|tenant| tenant != command.tenant.as_str()) {
            return Err(Invalid::new("tenantId", "must be the same in the envelope and in the payload"));
        }
        Ok(command)
    }

    fn bare(payload: &Object<'_>) -> Result<Self, Invalid> {
        let required = |field: &str| payload.text(field)?.ok_or_else(|| Invalid::new(field, "is required"));
        let service_call = required("serviceCallId")?;
        Ok(Self {
            tenant: tenant(&required("tenantId")?)?,
            service_call: Key::parse(&service_call).map_err(|invalid| Invalid::new("serviceCallId", invalid.rule))?,
            due_at: due_at(&required("dueAt")?)?,
            correlation_id: None,
        })
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

/// Whether this can stand alone between two dots of a subject: events are addressed by their tenant.
pub(crate) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e) && !matches!(byte, b'.' | b'*' | b'>');
    !text.is_empty() && !text.starts_with('$') && text.bytes().all(is_plain)
}

fn tenant(text: &str) -> Result<Namespace, Invalid> {
    let tenant = Namespace::parse(text).map_err(|invalid| Invalid::new("tenantId", invalid.rule))?;
    if !is_token(tenant.as_str()) {
        let rule = "must be printable ASCII without blanks and without . * >, and must not start with $: it is part of a subject";
        return Err(Invalid::new("tenantId", rule));
    }
    Ok(tenant)
}

fn due_at(text: &str) -> Result<Timestamp, Invalid> {
    let due_at = Timestamp::parse("dueAt", text)?;
    if due_at < Timestamp::from_micros(0) {
        return Err(Invalid::new("dueAt", "must not lie before 1970"));
    }
    Ok(due_at)
}

fn correlation_id(object: &Object<'_>) -> Result<Option<CorrelationId>, Invalid> {
    let text = object.text("correlationId")?.filter(|text| !text.is_empty());
    text.map(|text| CorrelationId::parse(&text).map_err(|invalid| Invalid::new("correlationId", invalid.rule))).transpose()
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
