//! Texts that are made once and sent often, compressed for clients that take them so.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::Compression;
use http::{HeaderMap, HeaderValue, header};

use crate::compression::{gzip, takes_gzip};

pub(crate) struct Page {
    plain: Bytes,
    /// `None` where it could not be made, which takes a machine without memory.
    gzip: Option<Bytes>,
}

impl Page {
    pub(crate) fn new(text: String) -> Self {
        Self { gzip: gzip(text.as_bytes(), Compression::best()).ok(), plain: text.into() }
    }

    /// The page as this client takes it.
    pub(crate) fn answer(&self, asked: &HeaderMap, content_type: &'static str) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(asked.get_all(header::ACCEPT_ENCODING)));
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    fn asking(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(codings))])
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
