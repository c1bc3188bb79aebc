//! The headers that a receiver gets from us, whichever way it is called.

use std::borrow::Cow;

use crate::{
    call::Call,
    signing::{SigningSecrets, unix_seconds},
};

pub(crate) const CONTENT_TYPE: &str = "Content-Type";
pub(crate) const JSON: &str = "application/json";
/// Of a NATS message only.
pub(crate) const TIMER_KEY: &str = "X-Timer-Key";

pub(crate) struct Header<'a> {
    pub name: &'static str,
    pub value: Cow<'a, str>,
    /// What the caller has set is not set again.
    pub is_default: bool,
}

/// All that describe the call, and the signature of `body` where calls are signed.
pub(crate) fn of<'a>(call: &'a Call<'_>, body: &[u8], signing: Option<&SigningSecrets>) -> Vec<Header<'a>> {
    let ours = |name, value: Cow<'a, str>| Header { name, value, is_default: false };
    let webhook_id = call.timer.webhook_id();
    let signature = signing.map(|secrets| secrets.sign(&webhook_id, call.at, body));
    let correlation_id = call.correlation_id().map(|value| Header { name: "X-Correlation-Id", value, is_default: true });
    let of_the_call = [
        ours("X-Timer-Id", call.timer.id().to_string().into()),
        ours("X-Timer-Namespace", call.namespace()),
        ours("X-Timer-Attempt", call.attempt.to_string().into()),
        ours("X-Timer-Scheduled-At", call.timer.execute_at.to_string().into()),
        ours("webhook-id", webhook_id.into()),
        ours("webhook-timestamp", unix_seconds(call.at).to_string().into()),
    ];
    let signature = signature.map(|value| ours("webhook-signature", value.into()));
    correlation_id.into_iter().chain(of_the_call).chain(signature).collect()
}
