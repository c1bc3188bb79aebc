use http::HeaderValue;

/// The `ETag` of a timer with this revision.
pub(crate) fn etag(revision: u32) -> HeaderValue {
    // Most answers tell of a new timer.
    if revision == 1 {
        return HeaderValue::from_static("\"1\"");
    }
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}
