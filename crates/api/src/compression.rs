//! Compresses answers for clients that take them so.
//!
//! Only what is worth it: the answer to a create is smaller than the least that is compressed, and pays for one look at its size. A
//! stream has no size and stays as it is; pages that are made once are compressed once, see [`crate::page`].

use std::io::{self, Write};

use axum::{
    body::{Body, HttpBody},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt;

/// Smaller answers fit one packet either way.
const BYTES_MIN: u64 = 1024;
/// Larger ones take a thread longer than other requests on it should wait.
const BYTES_INLINE_MAX: usize = 64 * 1024;

/// Whether it pays to compress this answer, and it is not compressed already.
pub(crate) fn is_worthwhile(response: &Response) -> bool {
    response.body().size_hint().exact().is_some_and(|bytes| bytes >= BYTES_MIN)
        && !response.headers().contains_key(header::CONTENT_ENCODING)
}

/// The answer as a client takes it that named these codings.
pub(crate) async fn compressed(response: Response, accept_encoding: &[HeaderValue]) -> Response {
    let (mut head, body) = response.into_parts();
    head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !takes_gzip(accept_encoding) {
        return Response::from_parts(head, body);
    }
    // A body that has a size is in memory, and cannot fail to be read.
    let Ok(plain) = body.collect().await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let plain = plain.to_bytes();
    let Ok(gzip) = gzip_beside(plain.clone()).await else { return Response::from_parts(head, Body::from(plain)) };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(gzip))
}

async fn gzip_beside(plain: Bytes) -> io::Result<Bytes> {
    if plain.len() <= BYTES_INLINE_MAX {
        return gzip(&plain, Compression::fast());
    }
    tokio::task::spawn_blocking(move || gzip(&plain, Compression::fast())).await?
}

pub(crate) fn gzip(plain: &[u8], level: Compression) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(plain)?;
    Ok(encoder.finish()?.into())
}

/// Whether `gzip` is among the codings, or `*` without it, and not with a weight of zero.
pub(crate) fn takes_gzip<'a>(accept_encoding: impl IntoIterator<Item = &'a HeaderValue>) -> bool {
    let mut any = false;
    let codings = accept_encoding.into_iter().filter_map(|value| value.to_str().ok());
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

    use axum::extract::Request;

    use super::*;
    use crate::rig::{Rig, request};

    const TIMER: &str = r#"{"seconds":90,"url":"http://a"}"#;

    #[test]
    fn gzip_is_taken_by_clients_that_say_so() {
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
            assert_eq!(takes_gzip([&HeaderValue::from_static(codings)]), expected, "{codings}");
        }
        assert!(!takes_gzip([]));
    }

    fn asking(method: &str, path: &str, body: &str) -> Request {
        let mut request = request(method, path, body);
        request.headers_mut().insert("accept-encoding", HeaderValue::from_static("gzip, br"));
        request
    }

    #[tokio::test]
    async fn a_large_answer_is_compressed_and_a_small_one_is_not() {
        let rig = Rig::new();
        for _ in 0..10 {
            let created = rig.send(asking("POST", "/timers", TIMER)).await;
            assert!(created.status == 201 && !created.headers.contains_key("content-encoding"), "{}", created.text);
        }
        let plain = rig.get("/timers").await;
        assert!(!plain.headers.contains_key("content-encoding") && plain.headers["vary"] == "accept-encoding");
        let mut request = asking("GET", "/timers", "");
        // The codings may come in several headers.
        request.headers_mut().insert("accept-encoding", HeaderValue::from_static("br"));
        request.headers_mut().append("accept-encoding", HeaderValue::from_static("gzip"));
        let (headers, bytes) = rig.send_for_bytes(request).await;
        assert_eq!(
            (&headers["content-encoding"], &headers["vary"]),
            (&HeaderValue::from_static("gzip"), &HeaderValue::from_static("accept-encoding"))
        );
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut unpacked).unwrap();
        assert!(unpacked == plain.text && bytes.len() * 3 < unpacked.len(), "{} of {}", bytes.len(), unpacked.len());
    }

    #[tokio::test]
    async fn an_answer_is_the_same_whether_it_is_compressed_here_or_beside() {
        for bytes in [BYTES_INLINE_MAX, BYTES_INLINE_MAX + 1] {
            let plain = Bytes::from(vec![b'a'; bytes]);
            let compressed = compressed(Response::new(Body::from(plain.clone())), &[HeaderValue::from_static("gzip")]).await;
            assert_eq!(compressed.headers()["content-encoding"], "gzip", "{bytes}");
            let packed = compressed.into_body().collect().await.unwrap().to_bytes();
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, plain, "{bytes}");
        }
    }
}
