//! Texts that are made once and sent often, compressed for those who take them so.

use std::io::{self, Write};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, header};

pub(crate) struct Page {
    plain: Bytes,
    /// None where it could not be made, which takes a machine without memory.
    gzip: Option<Bytes>,
}

impl Page {
    pub(crate) fn new(text: String) -> Self {
        Self { gzip: compress(&text).ok(), plain: text.into() }
    }

    /// The page as this client takes it.
    pub(crate) fn answer(&self, asked: &HeaderMap, content_type: &'static str) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(asked));
        let mut response = Body::from(gzip.unwrap_or(&self.plain).clone()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if gzip.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

fn compress(text: &str) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?.into())
}

/// Whether `gzip` is among the codings, or `*` without it, and not with a weight of zero.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let mut any = false;
    let codings = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for coding in codings.flat_map(|codings| codings.split(',')) {
        let mut parts = coding.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        match name.as_str() {
            "gzip" | "x-gzip" => return weight > 0.0,
            "*" => any = weight > 0.0,
            _ => {}
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    fn asking(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    #[test]
    fn gzip_is_taken_by_those_who_say_so() {
        for (codings, expected) in [
            ("", false),
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=0.0, *", false),
            ("*", true),
            ("*;q=0", false),
            ("deflate, br", false),
            ("identity", false),
        ] {
            assert_eq!(takes_gzip(&asking(codings)), expected, "{codings}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_page_is_the_same_compressed_or_not() {
        let text = "a page ".repeat(1000);
        let page = Page::new(text.clone());
        let plain = page.answer(&HeaderMap::new(), "text/plain");
        assert!(!plain.headers().contains_key("content-encoding") && plain.headers()["vary"] == "accept-encoding");
        assert_eq!(plain.into_body().collect().await.unwrap().to_bytes(), text.as_bytes());
        let gzip = page.answer(&asking("gzip"), "text/plain");
        assert_eq!(
            (&gzip.headers()["content-encoding"], &gzip.headers()["content-type"]),
            (&"gzip".parse().unwrap(), &"text/plain".parse().unwrap())
        );
        let bytes = gzip.into_body().collect().await.unwrap().to_bytes();
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut unpacked).unwrap();
        assert!(unpacked == text && bytes.len() * 10 < text.len());
    }
}
