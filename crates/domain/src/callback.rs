//! Whom a timer calls, and how a callback is written as JSON: the same text in requests, answers and stores.

mod text;
mod url;

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Headers, Invalid, JsonText, RetryPolicy, Span, Subject, limits, names_of, read_object_in, string_in};
use text::ObjectText;
pub use url::CallbackUrl;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    Http(HttpCallback),
    Nats(NatsCallback),
    /// The event that the command consumer owes to the client that scheduled the timer there. The timer itself says all that goes into it.
    Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCallback {
    pub url: CallbackUrl,
    pub headers: Headers,
    pub payload: Option<JsonText>,
    pub timeout: Span,
    pub protocol: Protocol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsCallback {
    pub topic: Subject,
    pub key: Option<String>,
    pub headers: Headers,
    pub payload: Option<JsonText>,
    pub jetstream: bool,
}

/// What an HTTP receiver's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Any 2xx is success; the body of the answer is ignored.
    #[default]
    Webhook,
    /// The body of the answer says whether it worked and when to call again.
    Timer,
}

impl Protocol {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Timer => "timer",
        }
    }
}

impl Callback {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Nats(_) => "nats",
            Self::Event => "event",
        }
    }

    /// Who is called, without anything that could be a secret: scheme, host and port, the NATS server, a stream of it as far as
    /// the subject tells, or the broker.
    pub fn receiver(&self) -> String {
        self.called().into_owned()
    }

    pub(crate) fn called(&self) -> Cow<'_, str> {
        match self {
            Self::Http(http) => http.url.origin().into(),
            // A stream that does not answer holds up what is published to it, and nothing else.
            Self::Nats(nats) if nats.jetstream => format!("nats stream {}", nats.topic.first_token()).into(),
            Self::Nats(_) => "nats".into(),
            Self::Event => "broker".into(),
        }
    }

    pub fn payload(&self) -> Option<&JsonText> {
        match self {
            Self::Http(http) => http.payload.as_ref(),
            Self::Nats(nats) => nats.payload.as_ref(),
            Self::Event => None,
        }
    }

    /// How it is tried again when the timer has no policy of its own.
    pub const fn retries(&self) -> Option<RetryPolicy> {
        match self {
            Self::Http(_) | Self::Nats(_) => None,
            // The client that scheduled it has no other way to learn that the time has come.
            Self::Event => Some(RetryPolicy::FOR_EVER),
        }
    }

    /// The callback as JSON text; [`Callback::from_json`] reads it back. Written by hand, so that the payload is taken over as it is:
    /// a serializer would have to read it once more to know that it is JSON.
    pub fn to_json(&self) -> String {
        let mut object = ObjectText::begin(self.kind(), self.payload().map_or(0, |payload| payload.as_str().len()));
        match self {
            Self::Http(HttpCallback { url, headers, payload, timeout, protocol }) => {
                object.string("url", url.as_str());
                object.headers(headers);
                object.payload(payload.as_ref());
                object.string("timeout", &timeout.to_string());
                object.string("protocol", protocol.as_str());
            }
            Self::Nats(NatsCallback { topic, key, headers, payload, jetstream }) => {
                object.string("topic", topic.as_str());
                if let Some(key) = key {
                    object.string("key", key);
                }
                object.headers(headers);
                object.payload(payload.as_ref());
                object.raw("jetstream", if *jetstream { "true" } else { "false" });
            }
            Self::Event => {}
        }
        object.end()
    }

    /// The names that [`Callback::from_json`] knows, of all types together.
    pub fn member_names() -> &'static [&'static str] {
        names_of::<Fields<'_>>()
    }

    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        let fields: Fields = read_object_in("callback", text)?;
        fields.into_callback(Trust::None).map_err(|invalid| invalid.within("callback"))
    }

    /// Reads what [`Callback::to_json`] wrote when the timer was stored. What is dear to check was checked then.
    pub fn from_stored(text: &str) -> Result<Self, Invalid> {
        let fields: Fields = read_object_in("callback", text)?;
        fields.into_callback(Trust::Stored).map_err(|invalid| invalid.within("callback"))
    }
}

impl HttpCallback {
    /// How long a receiver may take, if a client may grant it that long.
    pub fn allowed_timeout(timeout: Span) -> Result<Span, Invalid> {
        if !(limits::CALLBACK_TIMEOUT_MIN..=limits::CALLBACK_TIMEOUT_MAX).contains(&timeout) {
            let rule = format!("must lie between {} and {}", limits::CALLBACK_TIMEOUT_MIN, limits::CALLBACK_TIMEOUT_MAX);
            return Err(Invalid::new("timeout", rule));
        }
        Ok(timeout)
    }
}

/// Every field a callback can have. One flat struct, because the payload must stay the text it was, and tagged
/// enums take their content apart.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    r#type: Option<Value<'a>>,
    #[serde(borrow)]
    url: Option<Value<'a>>,
    #[serde(borrow)]
    topic: Option<Value<'a>>,
    #[serde(borrow)]
    key: Option<Value<'a>>,
    #[serde(borrow)]
    headers: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    timeout: Option<Value<'a>>,
    #[serde(borrow)]
    protocol: Option<Value<'a>>,
    #[serde(borrow)]
    jetstream: Option<&'a RawValue>,
}

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// From a client.
    None,
    /// From a store, into which nothing goes unchecked.
    Stored,
}

/// Keeps `null` apart from nothing at all: a payload of `null` is sent as `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A string, or something else that is passed over, so that the complaint can name its field or header.
struct Value<'a>(Option<Cow<'a, str>>);

impl<'a> Value<'a> {
    fn string(self, field: &str) -> Result<Cow<'a, str>, Invalid> {
        self.0.ok_or_else(|| Invalid::new(field, "must be a string"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(string_in(<&RawValue>::deserialize(deserializer)?)))
    }
}

/// The members of an object, in their order; those that are strings with their texts.
struct Pairs(Vec<(String, Option<String>)>);

impl Pairs {
    fn strings(raw: &RawValue) -> Result<Vec<(String, String)>, Invalid> {
        let Self(pairs) = serde_json::from_str(raw.get()).map_err(|_| Invalid::new("headers", "must be an object of strings"))?;
        let string = |(name, value): (String, Option<String>)| match value {
            Some(value) => Ok((name, value)),
            None => Err(Invalid::new(format!("headers.{name}"), "must be a string")),
        };
        pairs.into_iter().map(string).collect()
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, Value(value))) = members.next_entry()? {
                    pairs.push((name, value.map(Cow::into_owned)));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl Fields<'_> {
    fn into_callback(mut self, trust: Trust) -> Result<Callback, Invalid> {
        let kind = self.r#type.take().map(|value| value.string("type")).transpose()?;
        let of_http = [("url", self.url.is_some()), ("timeout", self.timeout.is_some()), ("protocol", self.protocol.is_some())];
        let of_nats = [("topic", self.topic.is_some()), ("key", self.key.is_some()), ("jetstream", self.jetstream.is_some())];
        let of_both = [("headers", self.headers.is_some()), ("payload", self.payload.is_some())];
        match kind.as_deref() {
            Some(kind @ "http") => {
                Self::refuse(kind, &of_nats)?;
                self.into_http(trust).map(Callback::Http)
            }
            Some(kind @ "nats") => {
                Self::refuse(kind, &of_http)?;
                self.into_nats(trust).map(Callback::Nats)
            }
            Some(kind @ "event") => {
                Self::refuse(kind, &[of_http.as_slice(), &of_nats, &of_both].concat())?;
                Ok(Callback::Event)
            }
            Some(_) => Err(Invalid::new("type", "must be http or nats")),
            None => Err(Invalid::new("type", "is required: http or nats")),
        }
    }

    /// A field of the other type would be ignored; better to say so.
    fn refuse(kind: &str, given: &[(&str, bool)]) -> Result<(), Invalid> {
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) => Err(Invalid::new(*field, format!("does not belong to a callback of type {kind}"))),
            None => Ok(()),
        }
    }

    fn parts(
        headers: Option<&RawValue>,
        payload: Option<&RawValue>,
        trust: Trust,
    ) -> Result<(Headers, Option<JsonText>), Invalid> {
        let headers = Headers::parse(headers.map(Pairs::strings).transpose()?.unwrap_or_default())?;
        let payload = payload.map(|raw| match trust {
            Trust::None => JsonText::of_raw("payload", raw, limits::PAYLOAD_BYTES_MAX),
            Trust::Stored => Ok(JsonText::trusted(raw.get())),
        });
        let payload = payload.transpose()?;
        Ok((headers, payload))
    }

    fn into_http(self, trust: Trust) -> Result<HttpCallback, Invalid> {
        let url = self.url.ok_or_else(|| Invalid::new("url", "is required"))?.string("url")?;
        let (headers, payload) = Self::parts(self.headers, self.payload, trust)?;
        let timeout = match self.timeout {
            Some(value) => HttpCallback::allowed_timeout(Span::parse("timeout", &value.string("timeout")?)?)?,
            None => limits::CALLBACK_TIMEOUT_DEFAULT,
        };
        let protocol = match self.protocol.map(|value| value.string("protocol")).transpose()?.as_deref() {
            None | Some("webhook") => Protocol::Webhook,
            Some("timer") => Protocol::Timer,
            Some(_) => return Err(Invalid::new("protocol", "must be webhook or timer")),
        };
        let url = match trust {
            Trust::None => CallbackUrl::parse(&url)?,
            Trust::Stored => CallbackUrl::trusted(url.into_owned()),
        };
        Ok(HttpCallback { url, headers, payload, timeout, protocol })
    }

    fn into_nats(self, trust: Trust) -> Result<NatsCallback, Invalid> {
        let topic = self.topic.ok_or_else(|| Invalid::new("topic", "is required"))?.string("topic")?;
        let key = self.key.map(|value| value.string("key")).transpose()?.map(Cow::into_owned);
        let (headers, payload) = Self::parts(self.headers, self.payload, trust)?;
        // They are orders to the server: one of them empties a stream.
        if let Some((name, _)) = headers.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("nats-")) {
            return Err(Invalid::new(format!("headers.{name}"), "must not be given: Nats- headers belong to the server"));
        }
        if let Some(key) = &key
            && (key.is_empty() || key.len() > limits::KEY_CHARS_MAX || !key.bytes().all(|b| matches!(b, 0x20..=0x7e)))
        {
            return Err(Invalid::new("key", format!("must be 1 to {} printable ASCII characters", limits::KEY_CHARS_MAX)));
        }
        let jetstream = match self.jetstream.map(RawValue::get) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Invalid::new("jetstream", "must be true or false")),
        };
        Ok(NatsCallback { topic: Subject::parse(&topic)?, key, headers, payload, jetstream })
    }
}

impl Serialize for Callback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
