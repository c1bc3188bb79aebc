use axum::{
    body::{Body, HttpBody},
    extract::{FromRequest, Request},
};
use commands::{Permit, Permits};
use domain::AccessKeyId;
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use crate::{Api, auth::Permitted, error::ApiError, limits};

/// The text of a JSON body: there, not too large, in time, of the right type and valid UTF-8. Not yet parsed. A large one holds a
/// permit for as long as it is there.
pub(crate) struct JsonBody<const BYTES_MAX: usize = { limits::BODY_BYTES_MAX }> {
    pub text: String,
    _permit: Option<Permit>,
}

impl<const BYTES_MAX: usize> FromRequest<Api> for JsonBody<BYTES_MAX> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        if parts.headers.contains_key(header::CONTENT_ENCODING) {
            return Err(ApiError::MediaType("the body must not be compressed"));
        }
        let typed = content_type(&parts.headers)?;
        if content_length(&parts.headers).is_some_and(|length| length > BYTES_MAX as u64) {
            return Err(ApiError::BodyTooLarge(BYTES_MAX));
        }
        let key = Permitted::of(&parts.extensions)?.0.caller.key_id();
        let mut reading = Reading { bytes: Vec::new(), bytes_max: BYTES_MAX, permit: None };
        match tokio::time::timeout(api.config.limits.body_time_max, reading.read(body, &api.large_bodies, key)).await {
            Ok(read) => read?,
            Err(_) if reading.is_waiting() => return Err(ApiError::TooManyLargeBodies),
            Err(_) => return Err(ApiError::BodyTooSlow),
        }
        let Reading { bytes, permit, .. } = reading;
        if bytes.is_empty() {
            return Err(ApiError::Malformed("the body is missing: send a JSON object".to_owned()));
        }
        if !typed {
            return Err(ApiError::MediaType("content-type must be application/json"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { text, _permit: permit }),
            Err(_) => Err(ApiError::Malformed("the body must be valid UTF-8".to_owned())),
        }
    }
}

/// The same for a request that may come without one; `null` says the same as nothing.
pub(crate) struct OptionalBody(pub Option<JsonBody>);

impl FromRequest<Api> for OptionalBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return Ok(Self(None));
        }
        let body = JsonBody::from_request(request, api).await?;
        Ok(Self((body.text.trim_ascii() != "null").then_some(body)))
    }
}

/// A body as far as it has arrived. It takes as much memory as that, whatever its length was said to be.
struct Reading {
    bytes: Vec<u8>,
    bytes_max: usize,
    permit: Option<Permit>,
}

impl Reading {
    async fn read(&mut self, mut body: Body, permits: &Permits, key: Option<AccessKeyId>) -> Result<(), ApiError> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::Malformed("the body could not be read".to_owned()))?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > self.bytes_max - self.bytes.len() {
                return Err(ApiError::BodyTooLarge(self.bytes_max));
            }
            self.bytes.extend_from_slice(&data);
            if self.is_waiting() {
                self.permit = Some(permits.acquire(key).await);
            }
        }
        Ok(())
    }

    /// Whether no more of it may be read before it has a permit.
    const fn is_waiting(&self) -> bool {
        self.bytes.len() > limits::SMALL_BODY_BYTES_MAX && self.permit.is_none()
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the body says that it is JSON; an error when it says that it is something else.
fn content_type(headers: &HeaderMap) -> Result<bool, ApiError> {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = given.next() else { return Ok(false) };
    match value.to_str() {
        Ok(text) if given.next().is_none() && is_json(text) => Ok(true),
        _ => Err(ApiError::MediaType("content-type must be application/json")),
    }
}

/// `application/json` or `application/<anything>+json`, with no parameter but `charset=utf-8`.
fn is_json(text: &str) -> bool {
    if text == "application/json" {
        return true;
    }
    let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']).to_ascii_lowercase());
    let essence = parts.next().unwrap_or_default();
    let subtype = essence.strip_prefix("application/").unwrap_or_default();
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b);
    let is_json = subtype == "json" || subtype.strip_suffix("+json").is_some_and(|name| !name.is_empty());
    is_json
        && subtype.bytes().all(is_token)
        && parts.all(|part| matches!(part.as_str(), "" | "charset=utf-8" | "charset=\"utf-8\""))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_large_body_waits_for_a_permit_and_a_small_one_does_not() {
        let permits = Permits::new(1);
        let read = |bytes: usize| {
            let mut reading = Reading { bytes: Vec::new(), bytes_max: limits::BODY_BYTES_MAX, permit: None };
            let read = reading.read(Body::from(vec![b' '; bytes]), &permits, None).now_or_never().map(|read| read.is_ok());
            (read, reading)
        };
        let (first, held) = read(limits::SMALL_BODY_BYTES_MAX + 1);
        assert_eq!((first, held.is_waiting()), (Some(true), false));
        for bytes in [limits::SMALL_BODY_BYTES_MAX + 1, limits::BODY_BYTES_MAX] {
            let (read, reading) = read(bytes);
            assert_eq!((read, reading.is_waiting()), (None, true));
        }
        assert_eq!(read(limits::BODY_BYTES_MAX + 1).0, Some(false));
        assert_eq!(read(limits::SMALL_BODY_BYTES_MAX).0, Some(true));
        drop(held);
        assert_eq!(read(limits::BODY_BYTES_MAX).0, Some(true));
    }

    #[test]
    fn only_json_in_utf_8_is_json() {
        for (text, expected) in [
            ("application/json", true),
            ("Application/JSON", true),
            ("application/json; charset=utf-8", true),
            ("application/json;charset=UTF-8", true),
            ("application/json; charset=\"utf-8\"", true),
            ("application/cloudevents+json", true),
            ("application/problem+json; charset=utf-8", true),
            ("application/json; charset=latin1", false),
            ("application/json; version=1", false),
            ("application/+json", false),
            ("application/jsonx", false),
            ("application/x y+json", false),
            ("text/json", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(is_json(text), expected, "{text}");
        }
    }
}
