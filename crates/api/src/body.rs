use axum::extract::{FromRequest, Request};
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::{Api, error::ApiError, limits};

/// The text of a JSON body: there, not too large, in time, of the right type and valid UTF-8. Not yet parsed.
pub(crate) struct JsonBody<const BYTES_MAX: usize = { limits::BODY_BYTES_MAX }>(pub String);

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
        let reading = Limited::new(body, BYTES_MAX).collect();
        let bytes = match tokio::time::timeout(api.config.limits.body_time_max, reading).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(ApiError::BodyTooLarge(BYTES_MAX)),
            Ok(Err(_)) => return Err(ApiError::Malformed("the body could not be read".to_owned())),
            Err(_) => return Err(ApiError::BodyTooSlow),
        };
        if bytes.is_empty() {
            return Err(ApiError::Malformed("the body is missing: send a JSON object".to_owned()));
        }
        if !typed {
            return Err(ApiError::MediaType("content-type must be application/json"));
        }
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(ApiError::Malformed("the body must be valid UTF-8".to_owned())),
        }
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
    use super::*;

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
