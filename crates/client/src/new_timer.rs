use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Error, Instant, Json, wire};

/// A timer to be registered: when, and what to call. Without a key it gets an id of its own, so that repeating the request is safe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewTimer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execute_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    callback: Callback,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_conflict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    postpone_max: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_success: Option<Callback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<Callback>,
}

/// What is called: an HTTP receiver, or the subscribers of a NATS subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Callback {
    /// `http` or `nats`; `event` for a timer that came as a NATS command.
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// `webhook` or `timer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Travels as the header `X-Timer-Key` of a NATS message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jetstream: Option<bool>,
}

/// How failed calls are repeated. What is left out has the value of the service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_multiplier: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<String>,
}

/// A length of time as the API writes it: the shortest form, the largest unit first. What is finer than a microsecond is left out.
pub fn duration(duration: Duration) -> String {
    const UNITS: [(&str, u128); 6] =
        [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];
    let (mut text, mut left) = (String::new(), duration.as_micros());
    for (unit, micros) in UNITS {
        if left >= micros {
            text.push_str(&format!("{}{unit}", left / micros));
            left %= micros;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

impl Callback {
    /// A POST to this URL.
    pub fn http(url: impl Into<String>) -> Self {
        Self { kind: "http".to_owned(), url: Some(url.into()), ..Self::default() }
    }

    /// A message to this NATS subject.
    pub fn nats(topic: impl Into<String>) -> Self {
        Self { kind: "nats".to_owned(), topic: Some(topic.into()), ..Self::default() }
    }

    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    #[must_use]
    pub fn payload(mut self, payload: Json) -> Self {
        self.payload = Some(payload);
        self
    }

    /// How long an HTTP receiver may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(duration(timeout));
        self
    }

    /// The body of the answer says whether it worked and when to call again.
    #[must_use]
    pub fn timer_protocol(mut self) -> Self {
        self.protocol = Some("timer".to_owned());
        self
    }

    /// Travels as the header `X-Timer-Key` of a NATS message.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// A stream must have stored the message.
    #[must_use]
    pub const fn jetstream(mut self) -> Self {
        self.jetstream = Some(true);
        self
    }
}

macro_rules! texts {
    ($($(#[$about:meta])* $name:ident),* $(,)?) => {$(
        $(#[$about])*
        #[must_use]
        pub fn $name(mut self, $name: impl Into<String>) -> Self {
            self.$name = Some($name.into());
            self
        }
    )*};
}

impl NewTimer {
    /// Calls `callback`; when is still to be said.
    pub fn new(callback: Callback) -> Self {
        Self {
            id: None,
            key: None,
            namespace: None,
            group: None,
            execute_at: None,
            delay: None,
            callback,
            on_conflict: None,
            metadata: None,
            retry_policy: None,
            delivery: None,
            correlation_id: None,
            expires_at: None,
            expires_after: None,
            postpone_max: None,
            on_success: None,
            on_failure: None,
        }
    }

    pub fn http(url: impl Into<String>) -> Self {
        Self::new(Callback::http(url))
    }

    pub fn nats(topic: impl Into<String>) -> Self {
        Self::new(Callback::nats(topic))
    }

    /// Makes the timer due after this delay from now.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(duration(delay));
        self
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(mut self, at: Instant) -> Self {
        self.execute_at = Some(wire::text(at));
        self
    }

    /// No attempt starts at or after this instant.
    #[must_use]
    pub fn expires(mut self, at: Instant) -> Self {
        self.expires_at = Some(wire::text(at));
        self
    }

    texts! {
        /// A UUID of version 7, of your own making. Not together with a key.
        id,
        /// Your own id within the namespace: creating it again is the same timer.
        key,
        namespace,
        group,
        /// `reject`, `replace`, `keep`, `postpone`, `earliest` or `latest`.
        on_conflict,
        /// `at_least_once` or `at_most_once`.
        delivery,
        correlation_id,
        /// The due time as a text in RFC 3339.
        execute_at,
        /// The due time as a text: `90s`, `1h30m`, `PT15M`.
        delay,
        expires_at,
        expires_after,
        postpone_max,
    }

    #[must_use]
    pub fn payload(mut self, payload: Json) -> Self {
        self.callback.payload = Some(payload);
        self
    }

    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.callback = self.callback.header(name, value);
        self
    }

    /// The trace that the call belongs to, as W3C Trace Context writes it; the receiver gets it.
    #[must_use]
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.header("traceparent", traceparent)
    }

    #[must_use]
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }

    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = Some(policy);
        self
    }

    #[must_use]
    pub fn on_success(mut self, callback: Callback) -> Self {
        self.on_success = Some(callback);
        self
    }

    #[must_use]
    pub fn on_failure(mut self, callback: Callback) -> Self {
        self.on_failure = Some(callback);
        self
    }

    /// The body of a request, which may be repeated.
    pub fn body(&self) -> Result<Json, Error> {
        if self.id.is_some() || self.key.is_some() {
            return Json::of(self);
        }
        Json::of(&Self { id: Some(uuid::Uuid::now_v7().to_string()), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_without_a_key_gets_an_id_of_its_own() {
        let timer = NewTimer::http("http://a/x").after(Duration::from_millis(1500)).payload(Json::text("1.10").unwrap());
        let body = timer.body().unwrap();
        let id: serde_json::Value = body.parse().unwrap();
        let id = id["id"].as_str().unwrap();
        assert_eq!(id.as_bytes()[14], b'7', "{id}");
        let rest = r#""delay":"1s500ms","callback":{"type":"http","url":"http://a/x","payload":1.10}}"#;
        assert_eq!(body.as_str(), format!(r#"{{"id":"{id}",{rest}"#));
        let keyed = timer.key("k").namespace("n").traceparent("00-1").body().unwrap();
        assert!(keyed.as_str().starts_with(r#"{"key":"k","namespace":"n","#), "{keyed}");
        assert!(keyed.as_str().contains(r#""headers":{"traceparent":"00-1"}"#), "{keyed}");
        assert_eq!(duration(Duration::from_secs(90)), "1m30s");
    }
}
