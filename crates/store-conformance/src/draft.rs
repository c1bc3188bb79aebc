//! A builder whose timers read like sentences: `timer("http://a.example/").key("k").due_in(secs(5))`.

use domain::{
    Callback, CallbackUrl, CorrelationId, Definition, Delivery, Endpoint, Expiry, Group, Headers, HttpEndpoint, JsonText, Key,
    Namespace, NatsEndpoint, NewTimer, OnConflict, Options, RequestedTime, RetryPolicy, Span, Subject, TimerId, Timestamp,
    TraceContext, limits,
};

/// The instant around which all timers of the suite are due: 2025-06-15T12:00:00Z. It is in the past of every database's clock,
/// because only due timers can be claimed.
pub const NOW: Timestamp = Timestamp::from_micros(1_749_988_800_000_000);

pub const fn secs(secs: u32) -> Span {
    Span::from_secs(secs)
}

pub const fn millis(millis: u32) -> Span {
    Span::from_millis(millis)
}

pub const fn micros(micros: u32) -> Span {
    Span::from_micros(micros)
}

pub const fn ahead(span: Span) -> Timestamp {
    NOW.saturating_add(span)
}

pub const fn ago(span: Span) -> Timestamp {
    NOW.saturating_sub(span)
}

/// A timer that calls `url`, due at [`NOW`] and registered then, with a random id.
pub fn timer(url: &str) -> Draft {
    let callback = Callback::new(Endpoint::Http(HttpEndpoint::new(CallbackUrl::parse(url).unwrap())));
    let definition = Definition {
        id: TimerId::random(NOW),
        namespace: Namespace::default(),
        key: None,
        asked: RequestedTime::At(NOW),
        callback,
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    Draft(NewTimer { definition, execute_at: NOW, on_conflict: OnConflict::Reject, created_at: NOW })
}

/// A timer that is being described.
#[derive(Debug, Clone)]
#[must_use]
pub struct Draft(NewTimer);

impl Draft {
    pub fn build(self) -> NewTimer {
        self.0
    }

    /// The id that it will have: from the namespace and key once there is a key, or the one given last.
    pub fn id(&self) -> TimerId {
        self.0.definition.id
    }

    pub fn with_id(mut self, id: TimerId) -> Self {
        self.0.definition.id = id;
        self
    }

    /// An id that ends in `number`: ordered by the numbers, and spread over the shards by them.
    pub fn numbered(self, number: u64) -> Self {
        let text = format!("00000000-0000-7000-8000-{number:012x}");
        self.with_id(TimerId::parse("id", &text).unwrap())
    }

    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.definition.namespace = Namespace::parse(namespace).unwrap();
        self.keyed()
    }

    pub fn key(mut self, key: &str) -> Self {
        self.0.definition.key = Some(Key::parse(key).unwrap());
        self.keyed()
    }

    fn keyed(mut self) -> Self {
        let definition = &mut self.0.definition;
        if let Some(key) = &definition.key {
            definition.id = TimerId::keyed(&definition.namespace, key);
        }
        self
    }

    pub fn due_at(mut self, at: Timestamp) -> Self {
        self.0.definition.asked = RequestedTime::At(at);
        self.0.execute_at = at;
        self
    }

    pub fn due_in(self, span: Span) -> Self {
        self.due_at(ahead(span))
    }

    pub fn due_ago(self, span: Span) -> Self {
        self.due_at(ago(span))
    }

    /// Due after a delay that counts from its registration.
    pub fn after(mut self, delay: Span) -> Self {
        self.0.definition.asked = RequestedTime::After(delay);
        self.0.execute_at = self.0.created_at.saturating_add(delay);
        self
    }

    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.0.created_at = at;
        self
    }

    pub fn on_conflict(mut self, mode: OnConflict) -> Self {
        self.0.on_conflict = mode;
        self
    }

    pub fn payload(mut self, json: &str) -> Self {
        let json = Some(JsonText::parse("payload", json, limits::PAYLOAD_BYTES_MAX).unwrap());
        self.content().payload = json;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        let headers = &mut self.content().headers;
        let mut pairs: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        pairs.push((name.to_owned(), value.to_owned()));
        *headers = Headers::parse(pairs).unwrap();
        self
    }

    fn content(&mut self) -> &mut Callback {
        let callback = &mut self.0.definition.callback;
        assert!(!callback.is_event(), "an event has neither headers nor a payload of its own");
        callback
    }

    /// Makes this call, and tells of its end in the same way.
    pub fn calling(mut self, callback: Callback) -> Self {
        self.0.definition.options.on_success = Some(Box::new(callback.clone()));
        self.0.definition.options.on_failure = Some(Box::new(callback.clone()));
        self.0.definition.callback = callback;
        self
    }

    /// Publishes on a subject instead of calling a URL.
    pub fn publishing(mut self, topic: &str) -> Self {
        self.0.definition.callback = Callback::new(Endpoint::Nats(NatsEndpoint {
            topic: Subject::parse(topic).unwrap(),
            key: Some("message-key".to_owned()),
            jetstream: true,
        }));
        self
    }

    /// Announces an event through the broker instead of calling a URL.
    pub fn announcing(mut self) -> Self {
        self.0.definition.callback = Callback::EVENT;
        self
    }

    pub fn metadata(mut self, json: &str) -> Self {
        self.0.definition.metadata = Some(JsonText::parse("metadata", json, limits::METADATA_BYTES_MAX).unwrap());
        self
    }

    pub fn correlation_id(mut self, text: &str) -> Self {
        self.0.definition.correlation_id = Some(CorrelationId::parse(text).unwrap());
        self
    }

    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.0.definition.retry_policy = Some(policy);
        self
    }

    /// Tells this URL how it has ended.
    pub fn telling(mut self, url: &str) -> Self {
        let callback = Callback::new(Endpoint::Http(HttpEndpoint::new(CallbackUrl::parse(url).unwrap())));
        self.0.definition.options.on_success = Some(Box::new(callback.clone()));
        self.0.definition.options.on_failure = Some(Box::new(callback));
        self
    }

    pub fn group(mut self, group: &str) -> Self {
        self.0.definition.group = Some(Group::parse(group).unwrap());
        self
    }

    /// Created within this trace.
    pub fn traced(mut self, parent: &str) -> Self {
        self.0.definition.options.trace = TraceContext::parse(parent).map(Into::into);
        self
    }

    pub fn postpone_max(mut self, span: Span) -> Self {
        self.0.definition.options.postpone_max = Some(span);
        self
    }

    pub fn expiring(mut self, expiry: Expiry) -> Self {
        self.0.definition.options.expiry = Some(expiry);
        self
    }

    pub fn at_most_once(mut self) -> Self {
        self.0.definition.delivery = Delivery::AtMostOnce;
        self
    }
}
