//! How a callback is written.

use std::borrow::Cow;

use super::Callback;
use crate::{Headers, json::string_bytes};

/// Which members of a callback are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Members {
    All,
    /// Those that a reader does not know unless they are there.
    NotDefault,
}

impl Members {
    pub fn include<T: PartialEq>(self, value: &T, default: &T) -> bool {
        self == Self::All || value != default
    }
}

/// The text of an object, as it grows.
pub struct ObjectText(String);

impl ObjectText {
    pub fn begin(kind: &str, payload_bytes: usize) -> Self {
        // Enough for an address and the small members that most callbacks have.
        let mut text = String::with_capacity(256 + payload_bytes);
        text.push_str(r#"{"type":"#);
        push_quoted(&mut text, kind);
        Self(text)
    }

    pub fn raw(&mut self, name: &str, json: &str) {
        self.0.push_str(",\"");
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(json);
    }

    pub fn string(&mut self, name: &str, value: &str) {
        self.raw(name, "");
        push_quoted(&mut self.0, value);
    }

    /// Headers and payload, as far as there are any.
    pub fn content(&mut self, callback: &Callback) {
        self.headers(&callback.headers);
        if let Some(payload) = &callback.payload {
            self.raw("payload", payload.as_str());
        }
    }

    fn headers(&mut self, headers: &Headers) {
        if headers.is_empty() {
            return;
        }
        self.raw("headers", "{");
        for (at, (name, value)) in headers.iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            push_quoted(&mut self.0, name);
            self.0.push(':');
            push_quoted(&mut self.0, value);
        }
        self.0.push('}');
    }

    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// What the JSON string means with which `text` begins. Whatever comes after it does not matter.
pub fn leading_string(text: &str) -> Option<Cow<'_, str>> {
    let quoted = text.get(..string_bytes(text.as_bytes()))?;
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(quoted).ok().map(Cow::Owned)
}

fn push_quoted(text: &mut String, value: &str) {
    if value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        // A string cannot fail to be written.
        text.push_str(&serde_json::to_string(value).unwrap_or_default());
    }
}
