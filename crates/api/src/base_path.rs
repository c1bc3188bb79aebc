//! The path under which everything is served, for a proxy that hands paths on as they came.

use std::sync::Arc;

use axum::extract::Request;
use domain::Invalid;
use http::{Uri, uri::PathAndQuery};

const CHARS_MAX: usize = 200;

/// What every path begins with: nothing, or `/` and one or more segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(Arc<str>);

impl BasePath {
    /// `/` alone means that there is none, and so does an empty text.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let refused = |rule: &str| Err(Invalid::new(field, rule));
        if matches!(text, "" | "/") {
            return Ok(Self::default());
        }
        let Some(segments) = text.strip_prefix('/') else { return refused("must begin with /") };
        let is_plain = |segment: &str| {
            let is_character = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            !matches!(segment, "" | "." | "..") && segment.bytes().all(is_character)
        };
        if text.len() > CHARS_MAX || !segments.split('/').all(is_plain) {
            return refused("must be a path such as /timers-api, of letters, digits, - . _ ~ and no / at its end");
        }
        Ok(Self(text.into()))
    }

    /// The text that stands before a path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path behind it; `None` when the path is not under it.
    pub(crate) fn behind<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        match path.strip_prefix(self.0.as_bytes())? {
            [] => Some(b"/"),
            rest @ [b'/', ..] => Some(rest),
            // The path is `/timers-api2`, say; or there is no base path, and this is no path.
            rest => self.0.is_empty().then_some(rest),
        }
    }

    /// The request as it would be without a base path. One for another path is one that no route has.
    pub(crate) fn strip(&self, mut request: Request) -> Request {
        let path_and_query = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let (path, query) = path_and_query.split_at(path_and_query.find('?').unwrap_or(path_and_query.len()));
        let behind = self.behind(path.as_bytes()).and_then(|behind| std::str::from_utf8(behind).ok());
        let stripped = behind.and_then(|behind| format!("{behind}{query}").parse().ok());
        *request.uri_mut() = stripped.unwrap_or(Uri::from_static(NOWHERE));
        request
    }
}

/// A path that no route has.
const NOWHERE: &str = "/-";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::{Rig, request};

    const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

    fn base(text: &str) -> BasePath {
        BasePath::parse("BASE_PATH", text).unwrap()
    }

    #[test]
    fn a_base_path_is_a_plain_path() {
        for none in ["", "/"] {
            assert_eq!(base(none), BasePath::default());
        }
        for text in ["/timers-api", "/a/b_c/d.e~f", "/a"] {
            assert_eq!(base(text).as_str(), text);
        }
        for text in
            [" ", "a", "a/b", "/a/", "//", "/a//b", "/./a", "/..", "/a b", "/a?b", "/%41", "/é", "http://a/b", &"/a".repeat(101)]
        {
            assert!(BasePath::parse("BASE_PATH", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_behind_it_is_a_path() {
        for (base_path, path, expected) in [
            ("/", "/timers", Some("/timers")),
            ("/", "/", Some("/")),
            ("/a", "/a", Some("/")),
            ("/a", "/a/", Some("/")),
            ("/a", "/a/timers", Some("/timers")),
            ("/a", "/a//timers", Some("//timers")),
            ("/a", "/ab", None),
            ("/a", "/timers", None),
            ("/a", "/", None),
            ("/a", "/A/timers", None),
        ] {
            assert_eq!(base(base_path).behind(path.as_bytes()), expected.map(str::as_bytes), "{base_path} {path}");
        }
    }

    #[tokio::test]
    async fn everything_is_under_it_and_nothing_beside_it() {
        let rig = Rig::under(base("/timers-api"));
        let created = rig.call("POST", "/timers-api/timers", TIMER).await;
        assert_eq!(created.status, 201, "{}", created.text);
        let one = format!("/timers/{}", created.data("id").as_str().unwrap());
        assert_eq!(rig.get(&format!("/timers-api{one}")).await.status, 200);
        for beside in [one.as_str(), "/timers-api/timer"] {
            assert_eq!(rig.get(beside).await.refused(404, 3), "no such route: see /timers-api/docs", "{beside}");
        }
        assert_eq!(rig.get("/timers-api/timers?limit=0").await.refused(400, 2), "limit must be a whole number from 1 to 200");
        assert_eq!(
            rig.get("/timers-api/api/v1/timers/a/b").await.refused_v1(404, "TIMER_NOT_FOUND")["details"],
            serde_json::json!({})
        );
        for open in ["/healthz", "/ping", "/metrics", "/docs", "/openapi.json"] {
            for (prefix, status) in [("/timers-api", 200), ("", 401), ("/timers-api2", 401)] {
                let mut request = request("GET", &format!("{prefix}{open}"), "");
                request.headers_mut().clear();
                assert_eq!(rig.send(request).await.status, status, "{prefix}{open}");
            }
        }
        let document = rig.get("/timers-api/openapi.json").await.json();
        assert_eq!(document["servers"], serde_json::json!([{"url": "/timers-api"}]));
        assert!(rig.get("/timers-api/docs").await.text.contains("href=\"openapi.json\""));
    }
}
