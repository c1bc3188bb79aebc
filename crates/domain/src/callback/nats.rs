//! Callbacks of the kind `nats`: a message on a subject.

use std::borrow::Cow;

use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    Callback, Endpoint,
    fields::{Fields, Trust},
    info::{Backend, Content, Description, KindInfo},
    text::{Members, ObjectText},
};
use crate::{Invalid, Subject, limits};

pub(super) const KIND: KindInfo = KindInfo {
    name: "nats",
    fields: &["topic", "key", "jetstream"],
    content: Some(Content {
        headers: "Own headers of the message; rules as for HTTP, and none that begins with `Nats-`.",
        payload: "The body of the message, exactly as given: at most 256 KiB, nested at most 64 deep.",
    }),
    is_requestable: true,
    is_message: true,
    backend: Some(Backend { name: "NATS server", setting: "NATS_URL" }),
    description: Description::of::<NatsEndpoint>(),
};

/// A message on a NATS subject. Refused when no NATS server is configured.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
pub struct NatsEndpoint {
    /// A subject to publish on: no blanks, no wildcards.
    #[schema(value_type = String, min_length = 1, max_length = 255, pattern = "^[!-)+-=?-~]+$", example = "events.timer.triggered")]
    pub topic: Subject,
    /// Travels as the header `X-Timer-Key`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]*$", example = "user123")]
    pub key: Option<String>,
    /// Whether a stream must have stored the message before it counts as delivered. Unless given, `false`: it is enough that
    /// the server has taken it.
    #[schema(value_type = Option<bool>)]
    pub jetstream: bool,
}

impl NatsEndpoint {
    pub(super) fn receiver(&self) -> Cow<'_, str> {
        // A stream that does not answer holds up the timers that publish to it, and no other.
        if self.jetstream { format!("nats stream {}", self.topic.first_token()).into() } else { "nats".into() }
    }

    pub(super) fn write(&self, callback: &Callback, members: Members, object: &mut ObjectText) {
        let Self { topic, key, jetstream } = self;
        object.string("topic", topic.as_str());
        if let Some(key) = key {
            object.string("key", key);
        }
        object.content(callback);
        if members.include(jetstream, &false) {
            object.raw("jetstream", if *jetstream { "true" } else { "false" });
        }
    }

    pub(super) fn read(fields: &Fields<'_>, trust: Trust) -> Result<Callback, Invalid> {
        let topic = fields.required_string("topic")?;
        let key = fields.string("key")?.map(Cow::into_owned);
        let (headers, payload) = fields.content(trust)?;
        // They are orders to the server: one of them empties a stream.
        if let Some((name, _)) = headers.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("nats-")) {
            return Err(Invalid::new(format!("headers.{name}"), "must not be given: Nats- headers belong to the server"));
        }
        if let Some(key) = &key
            && (key.is_empty() || key.len() > limits::KEY_CHARS_MAX || !key.bytes().all(|b| matches!(b, 0x20..=0x7e)))
        {
            return Err(Invalid::new("key", format!("must be 1 to {} printable ASCII characters", limits::KEY_CHARS_MAX)));
        }
        let jetstream = match fields.raw("jetstream").map(RawValue::get) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Invalid::new("jetstream", "must be true or false")),
        };
        let topic = Subject::parse(&topic)?;
        Ok(Callback { endpoint: Endpoint::Nats(Self { topic, key, jetstream }), headers, payload })
    }
}
