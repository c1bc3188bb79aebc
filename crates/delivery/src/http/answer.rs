//! What a receiver says, and how much of it is listened to.

use std::time::{Duration, UNIX_EPOCH};

use ::http::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, SERVER},
};
use domain::{Span, Timestamp, limits};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{Call, Outcome};

pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Into how many pieces an answer may be cut: each costs time, however small it is.
pub(super) const ANSWER_PIECES_MAX: usize = 4096;
/// What a body that is not wanted may take, so that its connection can be used again.
const DISCARD_MAX: Duration = Duration::from_millis(100);
/// What is kept of a body for the record. A character has at most four bytes.
const KEPT_BYTES_MAX: usize = limits::ATTEMPT_DETAIL_CHARS_MAX * 4;

/// Why there is no whole answer.
pub(super) enum Unread {
    TooLarge,
    Lost,
}

pub(super) async fn read(mut body: Incoming) -> Result<Vec<u8>, Unread> {
    let (mut bytes, mut pieces) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Lost)?.into_data() else { continue };
        pieces += 1;
        if bytes.len() + data.len() > ANSWER_BYTES_MAX || pieces > ANSWER_PIECES_MAX {
            return Err(Unread::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// How many bytes of the answer the record of such an outcome wants.
pub(super) fn kept_max(call: &Call<'_>, outcome: &Outcome) -> usize {
    if call.attempt_log.wants(outcome.is_delivered()) { call.answer_bytes_max.max(KEPT_BYTES_MAX) } else { 0 }
}

/// The headers of an answer that are kept with a record: what helps to understand it.
const KEPT_HEADERS: [HeaderName; 5] = [CONTENT_TYPE, LOCATION, RETRY_AFTER, SERVER, HeaderName::from_static("x-request-id")];
/// How much of each.
const KEPT_HEADER_CHARS_MAX: usize = 256;

pub(super) fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let shown = |name: &HeaderName| {
        let text = String::from_utf8_lossy(headers.get(name)?.as_bytes());
        Some((name.as_str().to_owned(), text.chars().take(KEPT_HEADER_CHARS_MAX).collect()))
    };
    KEPT_HEADERS.iter().filter_map(shown).collect()
}

/// Lets a short rest of the answer pass, which keeps the connection; one that is long or slow is dropped with it. Returns its
/// first `kept_max` bytes, or as many of them as have passed.
pub(super) async fn discard(mut body: Incoming, deadline: Instant, kept_max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    if body.is_end_stream() || body.size_hint().lower() > ANSWER_BYTES_MAX as u64 {
        return kept;
    }
    let (mut bytes, mut pieces) = (0, 0);
    let pass = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else { continue };
            bytes += data.len();
            pieces += 1;
            kept.extend_from_slice(&data[..data.len().min(kept_max - kept.len())]);
            if bytes > ANSWER_BYTES_MAX || pieces > ANSWER_PIECES_MAX {
                break;
            }
        }
    };
    // However it ends, the outcome is known already.
    let _ = timeout_at(deadline.min(Instant::now() + DISCARD_MAX), pass).await;
    kept
}

/// The answer of the `timer` protocol; or, for the owner of the timer, what is wrong with it.
pub(super) fn understand(body: &[u8]) -> Result<Outcome, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        ok: bool,
        next_execute_at: Option<String>,
    }
    const WANTED: &str = r#"{"ok": true or false, "nextExecuteAt": optional RFC 3339 time}"#;

    let answer: Answer = serde_json::from_slice(body).map_err(|_| format!("answered 200 without {WANTED}"))?;
    match answer.next_execute_at {
        Some(text) => match Timestamp::parse("nextExecuteAt", &text) {
            Ok(at) => Ok(Outcome::Rescheduled { at }),
            Err(invalid) => Err(format!("answered 200, but {invalid}")),
        },
        None if answer.ok => Ok(Outcome::Delivered),
        None => Err("answered 200 with ok: false and no nextExecuteAt".to_owned()),
    }
}

/// How long the headers were on their way, with colon, blank and end of line.
pub(super) fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// How long the receiver asks to be left alone: in seconds, or up to a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let micros = text.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000));
        return Some(Span::from_micros_clamped(micros.unwrap_or(i64::MAX)));
    }
    let since_epoch = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let until = Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX));
    Some(until.since(now))
}

#[cfg(test)]
mod tests {
    use domain::AttemptLog;

    use super::*;
    use crate::timers;

    #[test]
    fn some_headers_are_kept_and_none_is_long() {
        let headers = HeaderMap::from_iter([
            (SERVER, "a".repeat(1_000).parse().unwrap()),
            (CONTENT_TYPE, ::http::HeaderValue::from_bytes(b"text/\xff").unwrap()),
            (::http::header::SET_COOKIE, "secret=1".parse().unwrap()),
        ]);
        let kept = [("content-type", "text/\u{fffd}".to_owned()), ("server", "a".repeat(256))];
        assert_eq!(kept_headers(&headers), kept.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn only_what_the_record_wants_is_kept() {
        let failed = Outcome::from(crate::Failure::new(crate::FailureKind::Status(500), ""));
        let again = Outcome::Rescheduled { at: Timestamp::from_micros(0) };
        for (attempt_log, outcome, kept) in [
            (AttemptLog::Nothing, &Outcome::Delivered, 0),
            (AttemptLog::Nothing, &failed, 0),
            (AttemptLog::Failures, &Outcome::Delivered, 0),
            (AttemptLog::Failures, &again, 0),
            (AttemptLog::Failures, &failed, 1024),
            (AttemptLog::Everything, &Outcome::Delivered, 1024),
            (AttemptLog::Everything, &failed, 1024),
        ] {
            let (timer, at) = (timers::http("http://127.0.0.1/", ""), Timestamp::from_micros(0));
            let call = Call { timer: &timer, attempt: 1, at, signing: None, trace: None, attempt_log, answer_bytes_max: 0 };
            assert_eq!(kept_max(&call, outcome), kept, "{attempt_log:?} {outcome:?}");
            let more = if kept == 0 { 0 } else { 65_536 };
            assert_eq!(kept_max(&Call { answer_bytes_max: 65_536, ..call }, outcome), more, "{attempt_log:?} {outcome:?}");
        }
    }

    #[test]
    fn the_timer_protocol_has_four_answers() {
        let at = Timestamp::parse("at", "2031-01-01T00:00:00Z").unwrap();
        for (body, outcome) in [
            (r#"{"ok":true}"#, Some(Outcome::Delivered)),
            (r#"{"ok":true,"nextExecuteAt":null,"note":[1]}"#, Some(Outcome::Delivered)),
            (r#"{"ok":true,"nextExecuteAt":"2031-01-01T01:00:00+01:00"}"#, Some(Outcome::Rescheduled { at })),
            (r#"{"ok":false,"nextExecuteAt":"2031-01-01T00:00:00Z"}"#, Some(Outcome::Rescheduled { at })),
            (r#"{"ok":false}"#, None),
            (r#"{"ok":"true"}"#, None),
            (r#"{"nextExecuteAt":"2031-01-01T00:00:00Z"}"#, None),
            (r#"{"ok":true,"nextExecuteAt":"tomorrow"}"#, None),
            (r#"{"ok":true,"nextExecuteAt":1924992000}"#, None),
            ("", None),
            ("ok", None),
            ("\u{1f}\u{8b}", None),
            ("[true]", None),
            (r#"{"ok":true} x"#, None),
        ] {
            assert_eq!(understand(body.as_bytes()).ok(), outcome, "{body}");
        }
    }

    #[test]
    fn a_bad_answer_is_explained_without_repeating_it() {
        let complaint = |body: &str| understand(body.as_bytes()).unwrap_err();
        assert!(complaint("secret").starts_with("answered 200 without {"));
        assert_eq!(complaint(r#"{"ok":false}"#), "answered 200 with ok: false and no nextExecuteAt");
        assert!(complaint(r#"{"ok":false,"nextExecuteAt":"x"}"#).starts_with("answered 200, but nextExecuteAt must be"));
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now = Timestamp::parse("now", "2026-11-15T08:12:00Z").unwrap();
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("99999999999999999999", Some(i64::MAX / 1_000_000 + 1)),
            ("Sun, 15 Nov 2026 08:12:31 GMT", Some(31)),
            ("Sun, 15 Nov 2026 08:11:00 GMT", Some(0)),
            ("Sunday, 15-Nov-26 08:12:31 GMT", Some(31)),
            ("-5", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now).map(Span::as_secs_up), seconds, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
