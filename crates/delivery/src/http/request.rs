//! What a receiver gets.

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT},
};
use bytes::Bytes;
use domain::{HttpCallback, JsonText, Protocol};
use http_body_util::Full;

use crate::{
    call::Call,
    signing::{SigningSecrets, unix_seconds},
};

const TIMER_ID: HeaderName = HeaderName::from_static("x-timer-id");
const TIMER_NAMESPACE: HeaderName = HeaderName::from_static("x-timer-namespace");
const TIMER_ATTEMPT: HeaderName = HeaderName::from_static("x-timer-attempt");
const TIMER_SCHEDULED_AT: HeaderName = HeaderName::from_static("x-timer-scheduled-at");
const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

const HEADERS_OF_OURS: usize = 12;

pub(super) fn write(
    callback: &HttpCallback,
    call: &Call<'_>,
    agent: &HeaderValue,
    signing: Option<&SigningSecrets>,
) -> Result<Request<Full<Bytes>>, ::http::Error> {
    let body = match callback.protocol {
        Protocol::Webhook => callback.payload.as_ref().map(shared).unwrap_or_default(),
        Protocol::Timer => Bytes::from(timer_body(callback.payload.as_ref(), call)),
    };
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::try_from(callback.url.as_str())?;
    *request.headers_mut() = headers(callback, call, agent)?;

    let webhook_id = call.timer.webhook_id();
    let headers = request.headers_mut();
    if let Some(secrets) = signing {
        headers.insert(WEBHOOK_SIGNATURE, secrets.sign(&webhook_id, call.at, &body).try_into()?);
    }
    if body.is_empty() {
        // Some servers refuse a POST that says nothing about its length.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    headers.insert(WEBHOOK_ID, webhook_id.try_into()?);
    headers.insert(WEBHOOK_TIMESTAMP, unix_seconds(call.at).into());
    Ok(request)
}

/// The caller's own headers, then ours. Those of ours that it may set too, it has set for good.
fn headers(callback: &HttpCallback, call: &Call<'_>, agent: &HeaderValue) -> Result<HeaderMap, ::http::Error> {
    let mut headers = HeaderMap::with_capacity(callback.headers.iter().count() + HEADERS_OF_OURS);
    for (name, value) in callback.headers.iter() {
        headers.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
    }
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    headers.entry(USER_AGENT).or_insert_with(|| agent.clone());
    if let Some(correlation_id) = call.correlation_id() {
        headers.entry(CORRELATION_ID).or_insert(correlation_id.as_ref().try_into()?);
    }
    headers.insert(TIMER_ID, call.timer.id().to_string().try_into()?);
    headers.insert(TIMER_NAMESPACE, call.namespace().as_ref().try_into()?);
    headers.insert(TIMER_ATTEMPT, call.attempt.into());
    headers.insert(TIMER_SCHEDULED_AT, call.timer.execute_at.to_string().try_into()?);
    Ok(headers)
}

/// The payload as it lies in memory: a large one is not copied to be sent.
fn shared(payload: &JsonText) -> Bytes {
    struct Shared(JsonText);

    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }

    Bytes::from_owner(Shared(payload.clone()))
}

/// The body of the `timer` protocol. Put together by hand so that the payload stays the text it was.
fn timer_body(payload: Option<&JsonText>, call: &Call<'_>) -> String {
    let payload = payload.map_or("null", JsonText::as_str);
    let namespace = call.timer.definition.namespace.as_str();
    format!(
        r#"{{"timerId":{},"namespace":{},"executeAt":"{}","attempt":{},"payload":{payload}}}"#,
        serde_json::Value::from(call.name().as_ref()),
        serde_json::Value::from(namespace),
        call.timer.execute_at,
        call.attempt,
    )
}
