//! What a receiver gets.

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, InvalidHeaderName, USER_AGENT},
};
use bytes::Bytes;
use domain::{Callback, HttpEndpoint, JsonText, Protocol};
use http_body_util::Full;

use crate::{
    call::Call,
    headers::{self, Header},
    payload,
};

const HEADERS_OF_OURS: usize = 12;

/// The names of the headers that every call has, as HTTP wants them: reading a name takes longer than finding it.
static NAMES: [(&str, HeaderName); 7] = [
    (domain::TIMER_ID_HEADER, HeaderName::from_static("x-timer-id")),
    ("X-Timer-Namespace", HeaderName::from_static("x-timer-namespace")),
    ("X-Timer-Attempt", HeaderName::from_static("x-timer-attempt")),
    ("X-Timer-Scheduled-At", HeaderName::from_static("x-timer-scheduled-at")),
    ("webhook-id", HeaderName::from_static("webhook-id")),
    (domain::CALL_TIME_HEADER, HeaderName::from_static(domain::CALL_TIME_HEADER)),
    ("webhook-signature", HeaderName::from_static("webhook-signature")),
];

pub(super) fn write(
    endpoint: &HttpEndpoint,
    call: &Call<'_>,
    agent: &HeaderValue,
    place: &Uri,
) -> Result<Request<Full<Bytes>>, ::http::Error> {
    let callback = &call.timer.definition.callback;
    let body = match endpoint.protocol {
        Protocol::Webhook => payload::bytes(callback.payload()),
        Protocol::Timer => Bytes::from(timer_body(callback.payload(), call)),
    };
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = Method::POST;
    // A server gets the path only; who is meant stands in a header.
    if let Some(path) = place.path_and_query() {
        *request.uri_mut() = path.clone().into();
    }
    *request.headers_mut() = headers(callback, call, agent, &body)?;
    if let Some(authority) = place.authority() {
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    }
    if body.is_empty() {
        // Some servers refuse a POST that says nothing about its length.
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(request)
}

/// The client's own headers, then those of the service. A default of the service gives way to the client's.
fn headers(callback: &Callback, call: &Call<'_>, agent: &HeaderValue, body: &Bytes) -> Result<HeaderMap, ::http::Error> {
    let of_trace = if call.trace.is_some() { 2 } else { 0 };
    let mut headers = HeaderMap::with_capacity(callback.headers.iter().count() + HEADERS_OF_OURS + of_trace);
    for (name, value) in callback.headers.iter() {
        headers.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
    }
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(headers::JSON));
    headers.entry(USER_AGENT).or_insert_with(|| agent.clone());
    for Header { name, value, is_default } in headers::of(call, body) {
        let (name, value) = (name_of(name)?, HeaderValue::try_from(value.into_owned())?);
        if !is_default || !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    Ok(headers)
}

fn name_of(name: &str) -> Result<HeaderName, InvalidHeaderName> {
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, name)) => Ok(name.clone()),
        None => HeaderName::from_bytes(name.as_bytes()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_name_is_the_one_that_it_would_be_read_as() {
        for (name, known) in &NAMES {
            assert_eq!(HeaderName::from_bytes(name.as_bytes()).unwrap(), known);
        }
    }
}
