//! Whom a timer calls and what it sends, and how a callback is written as JSON: the same text in requests and answers, and in stores the
//! same without what has its default.
//!
//! ```text
//!   Callback ─┬─ headers, payload     what is sent, whatever the kind
//!             └─ endpoint             where to: one variant of Endpoint, one CallbackKind and one file for each kind
//! ```

mod address;
mod description;
mod fields;
mod http;
mod info;
mod kind;
mod nats;
mod plain_url;
mod text;
mod url;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

pub use self::{
    address::Address,
    description::CallbackConfig,
    http::{HttpEndpoint, Protocol},
    info::Backend,
    kind::KindSet,
    nats::NatsEndpoint,
    url::CallbackUrl,
};
use self::{
    fields::{Fields, Trust},
    info::{Description, KindInfo},
    text::{Defaults, ObjectText},
};
use crate::{Headers, Invalid, JsonText, RetryPolicy, limits};

/// How much of a stored callback has its address: kind and URL, which has only ASCII characters.
pub const ADDRESS_BYTES: usize = limits::URL_CHARS_MAX + 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    pub endpoint: Endpoint,
    pub headers: Headers,
    pub payload: Option<JsonText>,
}

/// Where a callback goes, and what only its kind has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Http(HttpEndpoint),
    Nats(NatsEndpoint),
    /// The event that the command consumer owes to the client that scheduled the timer there. The timer itself says all that goes into it.
    Event,
}

/// The type of a callback: the field `type` in JSON, the label `kind` of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    Http,
    Nats,
    Event,
}

fn describe_event() -> RefOr<Schema> {
    let description = "The event of a timer that came through the broker dialect, published there when it is due. It cannot be asked for over HTTP.";
    ObjectBuilder::new().description(Some(description)).into()
}

impl CallbackKind {
    pub const ALL: [Self; 3] = [Self::Http, Self::Nats, Self::Event];

    const fn info(self) -> &'static KindInfo {
        match self {
            Self::Http => &http::KIND,
            Self::Nats => &nats::KIND,
            Self::Event => &KindInfo {
                name: "event",
                fields: &[],
                content: None,
                // Only the command consumer makes them, for the clients that listen there.
                is_requestable: false,
                is_message: true,
                backend: Some(Backend { name: "broker", setting: "TIMER_BROKER" }),
                description: Description { schema: describe_event, references: |_| {} },
            },
        }
    }
}

impl Endpoint {
    pub const fn kind(&self) -> CallbackKind {
        match self {
            Self::Http(_) => CallbackKind::Http,
            Self::Nats(_) => CallbackKind::Nats,
            Self::Event => CallbackKind::Event,
        }
    }

    fn receiver(&self) -> Cow<'_, str> {
        match self {
            Self::Http(http) => http.url.origin().into(),
            Self::Nats(nats) => nats.receiver(),
            Self::Event => "broker".into(),
        }
    }

    /// About how many bytes it holds besides itself.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Http(http) => http.url.as_str().len(),
            Self::Nats(nats) => nats.topic.as_str().len() + nats.key.as_ref().map_or(0, String::len),
            Self::Event => 0,
        }
    }
}

impl Callback {
    pub const EVENT: Self = Self::new(Endpoint::Event);

    /// A callback without headers of the client and without a payload.
    pub const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, headers: Headers::EMPTY, payload: None }
    }

    /// The name of its kind.
    pub const fn kind(&self) -> &'static str {
        self.endpoint.kind().as_str()
    }

    pub const fn is_event(&self) -> bool {
        matches!(self.endpoint, Endpoint::Event)
    }

    /// Who is called, without anything that could be a secret: scheme, host and port, the NATS server, a stream of it as far as
    /// the subject tells, or the broker.
    pub fn receiver(&self) -> String {
        self.called().into_owned()
    }

    /// The receiver as clients name it in a filter: `host:port` of a URL, or the subject of a message. An event has none.
    pub fn address(&self) -> Option<Address<'_>> {
        match &self.endpoint {
            Endpoint::Http(http) => Some(http.url.address()),
            Endpoint::Nats(nats) => Some(Address::Name(nats.topic.as_str())),
            Endpoint::Event => None,
        }
    }

    /// The same from the text that [`Callback::to_stored`] wrote, or from its first [`ADDRESS_BYTES`]: kind and address come first.
    pub fn address_in(stored: &str) -> Option<Cow<'_, str>> {
        let quoted = |start| stored.strip_prefix(start).and_then(text::leading_string);
        if let Some(url) = quoted(r#"{"type":"http","url":"#) {
            return Some(CallbackUrl::trusted(url.into_owned()).address().to_string().into());
        }
        quoted(r#"{"type":"nats","topic":"#)
    }

    pub(crate) fn called(&self) -> Cow<'_, str> {
        self.endpoint.receiver()
    }

    pub const fn payload(&self) -> Option<&JsonText> {
        self.payload.as_ref()
    }

    /// How it is tried again when the timer has no policy of its own.
    pub const fn retries(&self) -> Option<RetryPolicy> {
        // The client that waits for an event has no other way to learn that the time has come.
        if self.is_event() { Some(RetryPolicy::FOR_EVER) } else { None }
    }

    /// The callback as clients see it: JSON text with every member; [`Callback::from_json`] reads it back. Fingerprints are made of it, so
    /// that its members and their order never change.
    pub fn to_json(&self) -> String {
        self.written(Defaults::Written)
    }

    /// The callback as stores keep it: without the members that have their default, which [`Callback::from_stored`] knows. Kind and
    /// address come first.
    pub fn to_stored(&self) -> String {
        self.written(Defaults::LeftOut)
    }

    /// Written by hand, so that the payload is taken over as it is: a serializer would have to read it once more to know that it is JSON.
    fn written(&self, defaults: Defaults) -> String {
        let mut object = ObjectText::begin(self.kind(), self.payload().map_or(0, |payload| payload.as_str().len()));
        match &self.endpoint {
            Endpoint::Http(http) => http.write(self, defaults, &mut object),
            Endpoint::Nats(nats) => nats.write(self, defaults, &mut object),
            Endpoint::Event => {}
        }
        object.end()
    }

    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        serde_json::from_str::<&RawValue>(text).map_err(|_| Invalid::new("callback", "must be an object"))?;
        Self::from_checked(text)
    }

    /// The same for a text that was checked to be JSON when the request was parsed.
    pub(crate) fn from_checked(text: &str) -> Result<Self, Invalid> {
        Self::read(text, Trust::None)
    }

    /// Reads what [`Callback::to_stored`] wrote when the timer was stored, or an earlier version, which left nothing out. What is expensive
    /// to check was checked then, the payload among it: one that was damaged in the store is sent as it is.
    pub fn from_stored(text: &str) -> Result<Self, Invalid> {
        Self::read(text, Trust::Stored)
    }

    fn read(text: &str, trust: Trust) -> Result<Self, Invalid> {
        let fields = Fields::of_checked(text)?;
        let read = fields.kind().and_then(|kind| match kind {
            CallbackKind::Http => HttpEndpoint::read(&fields, trust),
            CallbackKind::Nats => NatsEndpoint::read(&fields, trust),
            CallbackKind::Event => Ok(Self::EVENT),
        });
        read.map_err(|invalid| invalid.within("callback"))
    }
}

impl Serialize for Callback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
