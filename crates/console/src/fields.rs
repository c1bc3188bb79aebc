//! What a form or the query of a URL says.

use std::{sync::Arc, time::Duration};

use axum::{
    body,
    extract::{FromRequest, FromRequestParts, Request},
};
use http::{header, request::Parts};
use url::form_urlencoded;

use crate::{Shared, problem::Problem};

/// The largest form: a payload of the largest size, every byte of it escaped.
const FORM_BYTES_MAX: usize = 1024 * 1024;
const FORM_TIME_MAX: Duration = Duration::from_secs(15);

/// Names and values, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The first value under this name; nothing where it is empty, as browsers send fields that were left empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(named, _)| named == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether there is such a field, empty or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(named, _)| named == name)
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(named, _)| named == name).map(|(_, value)| value.as_str())
    }

    /// The same, with another value under this name, or with none.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut pairs: Vec<_> = self.0.iter().filter(|(named, _)| named != name).cloned().collect();
        pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        Self(pairs)
    }

    /// As it stands behind a path: with its `?`, or empty.
    pub(crate) fn to_query(&self) -> String {
        let pairs = self.0.iter().filter(|(_, value)| !value.is_empty());
        let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        if text.is_empty() { text } else { format!("?{text}") }
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Fields {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// A segment of a path without its escapes.
pub(crate) fn decoded(segment: &str) -> String {
    // In a path a plus is a plus.
    let mut pairs = form_urlencoded::parse(segment.replace('+', "%2B").replace('=', "%3D").replace('&', "%26").as_bytes())
        .into_owned()
        .collect::<Vec<_>>();
    pairs.pop().map(|(name, _)| name).unwrap_or_default()
}

/// The query of the URL.
impl FromRequestParts<Arc<Shared>> for Fields {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Problem> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

/// The fields of a form that was sent.
pub(crate) struct Form(pub Fields);

impl FromRequest<Arc<Shared>> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Shared>) -> Result<Self, Problem> {
        let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !sent.starts_with("application/x-www-form-urlencoded") {
            return Err(Problem::NoForm("The body must be a form."));
        }
        let reading = body::to_bytes(request.into_body(), FORM_BYTES_MAX);
        match tokio::time::timeout(FORM_TIME_MAX, reading).await {
            Ok(Ok(bytes)) => Ok(Self(Fields::parse(&bytes))),
            Ok(Err(_)) => Err(Problem::NoForm("The form could not be read, or is larger than 1 MiB.")),
            Err(_) => Err(Problem::NoForm("The form did not arrive in time.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_a_path_is_decoded() {
        for (segment, text) in [("a:80", "a:80"), ("a%2Fb+c%20d=e&f", "a/b+c d=e&f"), ("", "")] {
            assert_eq!(decoded(segment), text);
        }
    }

    #[test]
    fn fields_read_back_as_they_are_written() {
        let fields = Fields::parse(b"q=ns%3Aa+b&id=1&id=2&empty=");
        assert_eq!((fields.get("q"), fields.get("empty"), fields.get("none")), (Some("ns:a b"), None, None));
        assert_eq!(fields.all("id").collect::<Vec<_>>(), ["1", "2"]);
        let other = fields.with("q", Some("a&b=\"c\"")).with("id", None);
        assert_eq!(other.to_query(), "?q=a%26b%3D%22c%22");
        assert_eq!(Fields::default().to_query(), "");
    }
}
