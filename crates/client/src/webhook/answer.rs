use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use crate::{Instant, wire};

/// An answer of a receiver, which hyper, axum and everything else over `http` can send: `Response::from(answer)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Answer {
    /// An answer without a body: 204, say.
    pub const fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    fn json(body: String) -> Self {
        Self { status: 200, headers: vec![("content-type", "application/json".to_owned())], body }
    }
}

/// `timer` protocol: the work is done; the timer completes, or is due again at `next`.
pub fn done(next: Option<Instant>) -> Answer {
    Answer::json(match next {
        Some(at) => format!(r#"{{"ok":true,"nextExecuteAt":"{}"}}"#, wire::text(at)),
        None => r#"{"ok":true}"#.to_owned(),
    })
}

/// `timer` protocol: not yet; call again at that time, with attempts counted anew.
pub fn again(at: Instant) -> Answer {
    Answer::json(format!(r#"{{"ok":false,"nextExecuteAt":"{}"}}"#, wire::text(at)))
}

/// `timer` protocol: it failed; the retry policy of the timer says what follows.
pub fn failed() -> Answer {
    Answer::json(r#"{"ok":false}"#.to_owned())
}

/// Either protocol: it failed for now; the next attempt should not come before the pause is over.
pub fn retry_after(pause: Duration) -> Answer {
    let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
    Answer { status: 503, headers: vec![("retry-after", seconds.to_string())], body: String::new() }
}

impl From<Answer> for Response<Full<Bytes>> {
    fn from(answer: Answer) -> Self {
        let mut response = Self::new(Full::new(Bytes::from(answer.body)));
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in answer.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}
