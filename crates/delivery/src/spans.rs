//! The spans of an attempt, where traces are recorded.

use std::sync::Arc;

use domain::{ActiveSpan, Firing, NewSpan, SpanKind, Timer, Timestamp, TraceContext, Tracer};

use crate::{Outcome, answer::Answer};

/// The firing of a timer, and the call to the receiver within it.
pub(crate) struct AttemptSpans {
    // First, because it ends first.
    call: Box<dyn ActiveSpan>,
    firing: Box<dyn ActiveSpan>,
}

impl AttemptSpans {
    pub fn start(tracer: &dyn Tracer, timer: &Timer, attempt: u32, at: Timestamp) -> Self {
        let creation = timer.definition.options.trace.as_deref();
        let (parent, link) = match tracer.firing() {
            Firing::Linked => (None, creation),
            Firing::Continued => (creation, None),
        };
        let mut firing = tracer.start(NewSpan { name: "timer.fire".to_owned(), kind: SpanKind::Internal, parent, link });
        firing.set("timer.id", timer.id().to_string().into());
        firing.set("timer.namespace", timer.definition.namespace.as_str().into());
        firing.set("timer.attempt", i64::from(attempt).into());
        // A retry is not late: it follows its policy.
        if attempt <= 1 {
            firing.set("timer.lateness_ms", (at.since(timer.execute_at).as_micros() / 1000).into());
        }
        if let Some(address) = timer.definition.callback.address() {
            firing.set("timer.destination", address.to_string().into());
        }
        let parent = firing.context();
        Self { call: call(tracer, timer, &parent), firing }
    }

    /// What the receiver goes on with.
    pub fn context(&self) -> Arc<TraceContext> {
        Arc::new(self.call.context())
    }

    pub fn end(mut self, answer: &Answer) {
        if let Some(status) = answer.status {
            self.call.set("http.response.status_code", i64::from(status).into());
        }
        self.firing.set("timer.outcome", answer.outcome.label().into());
        if matches!(answer.outcome, Outcome::Failed(_)) {
            // What a receiver said may hold anything, and stays with the timer.
            let why = answer.outcome.label();
            self.call.fail(why.to_owned());
            self.firing.fail(why.to_owned());
        }
    }
}

fn call(tracer: &dyn Tracer, timer: &Timer, firing: &TraceContext) -> Box<dyn ActiveSpan> {
    let callback = &timer.definition.callback;
    let receiver = callback.receiver();
    let (name, kind, attribute) = if callback.endpoint.kind().is_message() {
        (format!("publish {receiver}"), SpanKind::Producer, "messaging.destination.name")
    } else {
        (format!("POST {receiver}"), SpanKind::Client, "server.address")
    };
    let mut span = tracer.start(NewSpan { name, kind, parent: Some(firing), link: None });
    span.set(attribute, callback.address().map_or(receiver, |address| address.to_string()).into());
    span
}
