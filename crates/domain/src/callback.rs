//! Whom a timer calls, and how a callback is written as JSON: the same text in requests, answers and stores.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use url::Url;

use crate::{Headers, Invalid, JsonText, RetryPolicy, Span, TimerId, json::parse_object, limits};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Callback {
    Http(HttpCallback),
    Nats(NatsCallback),
    /// The event that the broker door owes to whoever scheduled the timer there. The timer itself says all that goes into it.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Any 2xx is success; the body of the answer is ignored.
    #[default]
    Webhook,
    /// The body of the answer says whether it worked and when to call again.
    Timer,
}

/// Receivers that share a fate: one host and port, the NATS server, a stream of it, or the broker. A hash, because a million
/// of them wait in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(pub u64);

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
        match self {
            Self::Http(http) => http.url.origin(),
            // A stream that does not answer holds up those who publish to it, not everybody.
            Self::Nats(nats) if nats.jetstream => format!("nats stream {}", nats.topic.first_token()),
            Self::Nats(_) => "nats".to_owned(),
            Self::Event => "broker".to_owned(),
        }
    }

    pub fn destination(&self) -> Destination {
        let digest = Sha256::digest(self.receiver().as_bytes());
        Destination(digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte)))
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
            // Somebody waits for it who has no other way to learn that the time has come.
            Self::Event => Some(RetryPolicy::FOR_EVER),
        }
    }

    /// The callback as JSON text; [`Callback::from_json`] reads it back.
    pub fn to_json(&self) -> String {
        // Strings, numbers and checked JSON only: nothing in here can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        let fields: Fields = parse_object("callback", text)?;
        fields.into_callback().map_err(|invalid| invalid.within("callback"))
    }
}

impl HttpCallback {
    /// How long a receiver may take, if a caller may grant it that long.
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
    r#type: Option<Value>,
    url: Option<Value>,
    topic: Option<Value>,
    key: Option<Value>,
    #[serde(default)]
    headers: Option<Pairs>,
    #[serde(default, borrow, deserialize_with = "present")]
    payload: Option<&'a RawValue>,
    timeout: Option<Value>,
    protocol: Option<Value>,
    jetstream: Option<bool>,
}

/// Keeps `null` apart from nothing at all: a payload of `null` is sent as `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A string, or something else that is passed over, so that the complaint can name its field or header.
struct Value(Option<String>);

impl Value {
    fn string(self, field: &str) -> Result<String, Invalid> {
        self.0.ok_or_else(|| Invalid::new(field, "must be a string"))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

/// The members of an object of strings, in their order.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers as an object of strings")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(name) = members.next_key::<String>()? {
                    let value = members
                        .next_value::<Value>()?
                        .0
                        .ok_or_else(|| serde::de::Error::custom(format!("headers.{name} must be a string")))?;
                    pairs.push((name, value));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl Fields<'_> {
    fn into_callback(mut self) -> Result<Callback, Invalid> {
        let kind = self.r#type.take().map(|value| value.string("type")).transpose()?;
        let of_http = [("url", self.url.is_some()), ("timeout", self.timeout.is_some()), ("protocol", self.protocol.is_some())];
        let of_nats = [("topic", self.topic.is_some()), ("key", self.key.is_some()), ("jetstream", self.jetstream.is_some())];
        let of_both = [("headers", self.headers.is_some()), ("payload", self.payload.is_some())];
        match kind.as_deref() {
            Some(kind @ "http") => {
                Self::refuse(kind, &of_nats)?;
                self.into_http().map(Callback::Http)
            }
            Some(kind @ "nats") => {
                Self::refuse(kind, &of_http)?;
                self.into_nats().map(Callback::Nats)
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

    fn parts(headers: Option<Pairs>, payload: Option<&RawValue>) -> Result<(Headers, Option<JsonText>), Invalid> {
        let headers = Headers::parse(headers.map(|pairs| pairs.0).unwrap_or_default())?;
        let payload = payload.map(|raw| JsonText::parse("payload", raw.get(), limits::PAYLOAD_BYTES_MAX)).transpose()?;
        Ok((headers, payload))
    }

    fn into_http(self) -> Result<HttpCallback, Invalid> {
        let url = self.url.ok_or_else(|| Invalid::new("url", "is required"))?.string("url")?;
        let (headers, payload) = Self::parts(self.headers, self.payload)?;
        let timeout = match self.timeout {
            Some(value) => HttpCallback::allowed_timeout(Span::parse("timeout", &value.string("timeout")?)?)?,
            None => limits::CALLBACK_TIMEOUT_DEFAULT,
        };
        let protocol = match self.protocol.map(|value| value.string("protocol")).transpose()?.as_deref() {
            None | Some("webhook") => Protocol::Webhook,
            Some("timer") => Protocol::Timer,
            Some(_) => return Err(Invalid::new("protocol", "must be webhook or timer")),
        };
        Ok(HttpCallback { url: CallbackUrl::parse(&url)?, headers, payload, timeout, protocol })
    }

    fn into_nats(self) -> Result<NatsCallback, Invalid> {
        let topic = self.topic.ok_or_else(|| Invalid::new("topic", "is required"))?.string("topic")?;
        let key = self.key.map(|value| value.string("key")).transpose()?;
        let (headers, payload) = Self::parts(self.headers, self.payload)?;
        // They are orders to the server: one of them empties a stream.
        if let Some((name, _)) = headers.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("nats-")) {
            return Err(Invalid::new(format!("headers.{name}"), "must not be given: Nats- headers belong to the server"));
        }
        if let Some(key) = &key
            && (key.is_empty() || key.len() > limits::KEY_CHARS_MAX || !key.bytes().all(|b| matches!(b, 0x20..=0x7e)))
        {
            return Err(Invalid::new("key", format!("must be 1 to {} printable ASCII characters", limits::KEY_CHARS_MAX)));
        }
        Ok(NatsCallback { topic: Subject::parse(&topic)?, key, headers, payload, jetstream: self.jetstream.unwrap_or(false) })
    }
}

impl Serialize for HttpCallback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Http<'a> {
            url: &'a str,
            #[serde(skip_serializing_if = "Headers::is_empty")]
            headers: &'a Headers,
            #[serde(skip_serializing_if = "Option::is_none")]
            payload: Option<&'a JsonText>,
            timeout: Span,
            protocol: Protocol,
        }
        let Self { url, headers, payload, timeout, protocol } = self;
        Http { url: url.as_str(), headers, payload: payload.as_ref(), timeout: *timeout, protocol: *protocol }
            .serialize(serializer)
    }
}

impl Serialize for NatsCallback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Nats<'a> {
            topic: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            key: Option<&'a str>,
            #[serde(skip_serializing_if = "Headers::is_empty")]
            headers: &'a Headers,
            #[serde(skip_serializing_if = "Option::is_none")]
            payload: Option<&'a JsonText>,
            jetstream: bool,
        }
        let Self { topic, key, headers, payload, jetstream } = self;
        Nats { topic: topic.as_str(), key: key.as_deref(), headers, payload: payload.as_ref(), jetstream: *jetstream }
            .serialize(serializer)
    }
}

/// An `http` or `https` address without credentials. What was checked is what is dialled: both use the parsed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackUrl(Url);

impl CallbackUrl {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |rule: String| Err(Invalid::new("url", rule));
        if text.chars().count() > limits::URL_CHARS_MAX {
            return refuse(format!("must not be longer than {} characters", limits::URL_CHARS_MAX));
        }
        let Ok(mut url) = Url::parse(text) else {
            return refuse("must be a valid http or https URL".to_owned());
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return refuse("must be a valid http or https URL".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not contain credentials: use headers".to_owned());
        }
        // A fragment never leaves the client.
        url.set_fragment(None);
        // Once more: escapes and punycode make it longer, and what is stored must read back.
        if url.as_str().len() > limits::URL_CHARS_MAX {
            return refuse(format!("must not be longer than {} characters", limits::URL_CHARS_MAX));
        }
        Ok(Self(url))
    }

    /// The same address with the timer's id as one more segment of its path.
    #[must_use]
    pub fn with_id(&self, id: TimerId) -> Self {
        let mut url = self.0.clone();
        let path = format!("{}/{id}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Self(url)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub const fn as_url(&self) -> &Url {
        &self.0
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

/// A subject that a NATS server takes a publish on, and that cannot reach its system or inbox subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject(String);

impl Subject {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |rule: &str| Err(Invalid::new("topic", rule));
        if text.is_empty() || text.len() > limits::SUBJECT_BYTES_MAX {
            return Err(Invalid::new("topic", format!("must have 1 to {} characters", limits::SUBJECT_BYTES_MAX)));
        }
        if text.starts_with('$') || text.starts_with("_INBOX") {
            return refuse("must not start with $ or _INBOX");
        }
        let is_plain =
            |token: &str| !token.is_empty() && token.bytes().all(|b| matches!(b, 0x21..=0x7e) && !matches!(b, b'*' | b'>'));
        if !text.split('.').all(is_plain) {
            return refuse("must be a NATS subject: tokens joined by dots, without blanks or wildcards");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn first_token(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
