//! The headers that a receiver gets from us, whichever way it is called.

use std::borrow::Cow;

use domain::{CALL_TIME_HEADER, TRACEPARENT, TRACESTATE};

use crate::{call::Call, signing::unix_seconds};

pub(crate) const CONTENT_TYPE: &str = "Content-Type";
pub(crate) const JSON: &str = "application/json";
/// The header of the timer's key, which only NATS messages have.
pub(crate) const TIMER_KEY: &str = "X-Timer-Key";

pub(crate) struct Header<'a> {
    pub name: &'static str,
    pub value: Cow<'a, str>,
    /// What the caller has set is not set again.
    pub is_default: bool,
}

/// All that describe the call, and the signature of `body` where calls are signed.
pub(crate) fn of(call: &Call<'_>, body: &[u8]) -> Vec<Header<'static>> {
    let header = |is_default| move |(name, value): (&'static str, String)| Header { name, value: value.into(), is_default };
    let signature = call.signing.map(|secrets| ("webhook-signature", secrets.sign(&call.timer.webhook_id(), call.at, body)));
    let correlation_id = call.timer.correlation_header().map(header(true));
    let timestamp = (CALL_TIME_HEADER, unix_seconds(call.at).to_string());
    let ours = call.timer.callback_headers(call.attempt).into_iter().chain([timestamp]).chain(signature);
    correlation_id.into_iter().chain(ours.map(header(false))).chain(trace(call)).collect()
}

/// The trace context, unless the client has set one of its own: half of each would belong to no trace.
fn trace(call: &Call<'_>) -> impl Iterator<Item = Header<'static>> {
    let is_own = || call.timer.definition.callback.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT));
    let context = call.trace.filter(|_| !is_own());
    let header = |name, value: String| Header { name, value: value.into(), is_default: true };
    let parent = context.map(|context| header(TRACEPARENT, context.traceparent()));
    let state = context.and_then(|context| Some(header(TRACESTATE, context.tracestate()?.to_owned())));
    parent.into_iter().chain(state)
}
