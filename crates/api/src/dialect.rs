//! Which dialect a request came to. The dialects share everything but the way in which they say no.

use axum::{extract::Request, response::Response};
use domain::Timestamp;
use http::{StatusCode, Uri};

use crate::{
    BasePath,
    envelope::{ErrorEnvelope, json},
    error::{ApiError, Refused},
    v1,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiDialect {
    Native,
    V1,
}

impl ApiDialect {
    pub(crate) fn of(path: &str) -> Self {
        Self::of_bytes(path.as_bytes())
    }

    /// The dialect that a request was sent to of whose head perhaps not all has arrived, or not all is right.
    pub(crate) fn of_head(head: &[u8], base_path: &BasePath) -> Self {
        let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let path = target.split(|byte| matches!(byte, b'?' | b'\r' | b'\n')).next().unwrap_or_default();
        Self::of_bytes(base_path.behind(path).unwrap_or_default())
    }

    pub(crate) fn of_bytes(path: &[u8]) -> Self {
        match path.strip_prefix(v1::ROOT.as_bytes()) {
            Some([] | [b'/', ..]) => Self::V1,
            _ => Self::Native,
        }
    }

    /// A request that stands for one that could not be read, so that the answer to it is worded like every other.
    pub(crate) fn synthetic_request(self, refused: ApiError) -> Request {
        let mut request = Request::default();
        *request.uri_mut() = match self {
            Self::Native => Uri::from_static("/"),
            Self::V1 => Uri::from_static(v1::ROOT),
        };
        request.extensions_mut().insert(Refused::from(refused));
        request
    }

    /// The answer to a request that was not carried out, in the words of this dialect.
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
    fn a_dialect_is_known_by_the_beginning_of_the_path() {
        for (path, dialect) in [
            ("/", ApiDialect::Native),
            ("/timers", ApiDialect::Native),
            ("/api", ApiDialect::Native),
            ("/api/v1x", ApiDialect::Native),
            ("/api/v11/timers", ApiDialect::Native),
            ("/x/api/v1/timers", ApiDialect::Native),
            ("/API/V1/timers", ApiDialect::Native),
            ("/api/v1", ApiDialect::V1),
            ("/api/v1/", ApiDialect::V1),
            ("/api/v1/timers/a/b", ApiDialect::V1),
        ] {
            assert_eq!(ApiDialect::of(path), dialect, "{path}");
            for rest in [" HTTP/1.1\r\nhost: a\r\n", "?a=/b HTTP/1.1\r\n", "\r\n", ""] {
                assert_eq!(
                    ApiDialect::of_head(format!("GET {path}{rest}").as_bytes(), &BasePath::default()),
                    dialect,
                    "{path}{rest}"
                );
            }
        }
        for head in [&b""[..], b"GET", b"GET ", b"\xff\xff", b"/api/v1/timers", b"GET  /api/v1/timers"] {
            assert_eq!(ApiDialect::of_head(head, &BasePath::default()), ApiDialect::Native);
        }
        let base_path = BasePath::parse("BASE_PATH", "/a").unwrap();
        assert_eq!(ApiDialect::of_head(b"GET /a/api/v1/timers HTTP/1.1\r\n", &base_path), ApiDialect::V1);
        assert_eq!(ApiDialect::of_head(b"GET /api/v1/timers HTTP/1.1\r\n", &base_path), ApiDialect::Native);
    }
}
