//! Compare-and-set: every answer with one timer carries its revision as `ETag`, and a change can name the one that it was made from
//! in `If-Match`.

use axum::extract::FromRequestParts;
use domain::{Invalid, Timer, Timestamp};
use http::{header, request::Parts};

use crate::{Api, envelope::Answer, error::ApiError, view::TimerView};

/// The revision that a change expects of its timer; `None` where the request names none, or says with `*` that any will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IfMatch(pub Option<u32>);

impl FromRequestParts<Api> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        let mut given = parts.headers.get_all(header::IF_MATCH).iter();
        match (given.next(), given.next()) {
            (None, _) => Ok(Self(None)),
            (Some(value), None) => Ok(Self::parse(value.as_bytes())?),
            (Some(_), Some(_)) => Err(refusal().into()),
        }
    }
}

impl IfMatch {
    /// Weak tags and lists of tags are refused: a revision is compared exactly, and a change is made from one.
    fn parse(text: &[u8]) -> Result<Self, Invalid> {
        if text == b"*" {
            return Ok(Self(None));
        }
        let digits = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).ok_or_else(refusal)?;
        let is_plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || !digits.starts_with(b"0"));
        let revision = std::str::from_utf8(digits).ok().filter(|_| is_plain).and_then(|digits| digits.parse().ok());
        revision.map(|revision| Self(Some(revision))).ok_or_else(refusal)
    }
}

fn refusal() -> Invalid {
    Invalid::new("If-Match", "must be one revision in double quotes, as the ETag of an answer has it, or *")
}

/// The answer to a change of one timer.
pub(crate) fn changed(message: &'static str, timer: Timer, now: Timestamp) -> Answer<TimerView> {
    let revision = timer.revision;
    Answer::ok(message, TimerView::of(timer, now)).with_revision(revision)
}

#[cfg(test)]
mod tests;
