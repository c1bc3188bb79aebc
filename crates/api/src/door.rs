//! Which door a request came to. The doors share everything but the way in which they say no.

use axum::{extract::Request, response::Response};
use domain::Timestamp;
use http::{StatusCode, Uri};

use crate::{
    envelope::{ErrorEnvelope, json},
    error::{ApiError, Refused},
    v1,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Native,
    V1,
}

impl Door {
    pub(crate) fn of(path: &str) -> Self {
        Self::of_bytes(path.as_bytes())
    }

    /// The door that a request was sent to of whose head perhaps not all has arrived, or not all is right.
    pub(crate) fn of_head(head: &[u8]) -> Self {
        let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        Self::of_bytes(target.split(|byte| matches!(byte, b'?' | b'\r' | b'\n')).next().unwrap_or_default())
    }

    fn of_bytes(path: &[u8]) -> Self {
        match path.strip_prefix(v1::ROOT.as_bytes()) {
            Some([] | [b'/', ..]) => Self::V1,
            _ => Self::Native,
        }
    }

    /// A request that stands for one that could not be read, so that the answer to it is worded like every other.
    pub(crate) fn knock(self, refused: ApiError) -> Request {
        let mut request = Request::default();
        *request.uri_mut() = match self {
            Self::Native => Uri::from_static("/"),
            Self::V1 => Uri::from_static(v1::ROOT),
        };
        request.extensions_mut().insert(Refused::from(refused));
        request
    }

    /// The answer to a request that was not carried out, in the words of this door.
    pub(crate) fn refusal(self, error: &ApiError, at: Timestamp) -> Response {
        let mut response = match self {
            Self::Native => json(self.status(error), &ErrorEnvelope::of(error)),
            Self::V1 => json(self.status(error), &v1::ErrorView::of(error, at)),
        };
        if let Some((name, value)) = error.header() {
            response.headers_mut().insert(name, value);
        }
        response
    }

    fn status(self, error: &ApiError) -> StatusCode {
        match self {
            Self::Native => error.status(),
            Self::V1 => v1::status(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_known_by_the_beginning_of_the_path() {
        for (path, door) in [
            ("/", Door::Native),
            ("/timers", Door::Native),
            ("/api", Door::Native),
            ("/api/v1x", Door::Native),
            ("/api/v11/timers", Door::Native),
            ("/x/api/v1/timers", Door::Native),
            ("/API/V1/timers", Door::Native),
            ("/api/v1", Door::V1),
            ("/api/v1/", Door::V1),
            ("/api/v1/timers/a/b", Door::V1),
        ] {
            assert_eq!(Door::of(path), door, "{path}");
            for rest in [" HTTP/1.1\r\nhost: a\r\n", "?a=/b HTTP/1.1\r\n", "\r\n", ""] {
                assert_eq!(Door::of_head(format!("GET {path}{rest}").as_bytes()), door, "{path}{rest}");
            }
        }
        for head in [&b""[..], b"GET", b"GET ", b"\xff\xff", b"/api/v1/timers", b"GET  /api/v1/timers"] {
            assert_eq!(Door::of_head(head), Door::Native);
        }
    }
}
