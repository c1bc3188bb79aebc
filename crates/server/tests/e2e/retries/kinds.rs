//! The ways in which a call can fail, and how each of them has to show.

use std::time::{Duration, UNIX_EPOCH};

use crate::rig::{Act, http_answer, now};

/// Who speaks with the receiver, and so what counts as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// A webhook of `/timers`.
    Native,
    /// The `timer` protocol of `/api/v1/timers`.
    V1,
}

pub struct Kind {
    /// Also its path at the receiver.
    pub path: &'static str,
    pub api: Api,
    /// `None`: no receiver listens.
    pub fail: Option<fn() -> Act>,
    /// How the record of an attempt calls it, and the status that it shows.
    pub outcome: &'static str,
    pub status: Option<u16>,
    /// What the reason says to the owner of the timer.
    pub reason: &'static str,
    pub max_interval: &'static str,
}

/// Longer than anything that is waited for here.
const NO_CAP: &str = "1m";
/// Between the intervals after the first and the second attempt, and shorter than what the receiver asks for.
pub const CAP: (&str, i64) = ("1500ms", 1_500_000);
/// How long the receiver at this URL may take. The one that falls silent answers in the end, on a busy machine, too; all the others
/// answer at once, and must not be taken for it.
pub fn timeout_of(url: &str) -> &'static str {
    if url.ends_with(SILENT) { "500ms" } else { "5s" }
}

const SILENT: &str = "/timeout";

const fn native(path: &'static str, fail: fn() -> Act, outcome: &'static str, status: Option<u16>, reason: &'static str) -> Kind {
    Kind { path, api: Api::Native, fail: Some(fail), outcome, status, reason, max_interval: NO_CAP }
}

const fn v1(path: &'static str, fail: fn() -> Act, outcome: &'static str, status: Option<u16>, reason: &'static str) -> Kind {
    Kind { api: Api::V1, ..native(path, fail, outcome, status, reason) }
}

pub const KINDS: [Kind; 15] = [
    native("/500", || status("500 Internal Server Error", ""), "status_5xx", Some(500), "answered 500"),
    native("/503", || status("503 Service Unavailable", ""), "status_5xx", Some(503), "answered 503"),
    native("/429", || status("429 Too Many Requests", ""), "status_4xx", Some(429), "answered 429"),
    native("/429-seconds", || status("429 Too Many Requests", "retry-after: 1\r\n"), "status_4xx", Some(429), "answered 429"),
    native("/429-date", || status("429 Too Many Requests", &at_a_date()), "status_4xx", Some(429), "answered 429"),
    // It asks for more than the policy allows to wait.
    Kind {
        max_interval: CAP.0,
        ..native(
            "/429-capped",
            || status("429 Too Many Requests", "retry-after: 3600\r\n"),
            "status_4xx",
            Some(429),
            "answered 429",
        )
    },
    native(SILENT, || Act::FallSilent, "timeout", None, "no answer within 500ms"),
    native("/reset", || Act::Reset, "reset", None, "connection closed before an answer came"),
    native("/not-http", || Act::Say("SSH-2.0-OpenSSH\r\n\r\n".to_owned()), "answer", None, "the answer is not HTTP/1.1"),
    Kind { fail: None, ..native("/refused", || Act::Reset, "refused", None, "connection refused") },
    v1("/v1-503", || status("503 Service Unavailable", ""), "status_5xx", Some(503), "answered 503"),
    v1("/v1-not-ok", || said(r#"{"ok":false}"#), "answer", Some(200), "ok: false and no nextExecuteAt"),
    v1("/v1-not-json", || said("fine"), "answer", Some(200), "answered 200 without"),
    v1("/v1-bad-time", || said(r#"{"ok":true,"nextExecuteAt":"soon"}"#), "answer", Some(200), "answered 200, but nextExecuteAt"),
    v1("/v1-cut-off", || Act::Say(cut_off()), "reset", Some(200), "closed the connection within its answer"),
];

/// Both protocols take this for a success.
pub fn success() -> Act {
    said(r#"{"ok":true}"#)
}

pub fn status(line: &str, headers: &str) -> Act {
    Act::Say(http_answer(line, headers, "not now"))
}

fn said(body: &str) -> Act {
    Act::Say(http_answer("200 OK", "", body))
}

fn cut_off() -> String {
    http_answer("200 OK", "", r#"{"ok":true}"#).trim_end_matches('}').to_owned()
}

/// The first whole second that is at least half a second away.
fn at_a_date() -> String {
    let seconds = u64::try_from((now() + 1_500_000) / 1_000_000).expect("a time after 1970");
    format!("retry-after: {}\r\n", httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)))
}
