//! What a client may send, parsed.

use std::borrow::Cow;

use hyper::{Uri, http::uri::Scheme};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::timer::{Due, Timer};

/// The body of `POST /timers`. Members that are not known are ignored.
#[derive(Debug, Deserialize)]
pub struct Create<'a> {
    #[serde(borrow)]
    execute_at: Cow<'a, str>,
    #[serde(borrow)]
    callback: Callback<'a>,
}

/// The body of `POST /timers/batch`.
#[derive(Debug, Deserialize)]
pub struct Batch<'a> {
    #[serde(borrow)]
    pub timers: Vec<Create<'a>>,
}

#[derive(Debug, Deserialize)]
struct Callback<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Create<'_> {
    pub fn parse(self, id: i64) -> Result<Timer, String> {
        let at: Timestamp = self.execute_at.parse().map_err(|error| format!("execute_at: {error}"))?;
        let url: Uri = self.callback.url.parse().map_err(|error| format!("callback.url: {error}"))?;
        if url.scheme() != Some(&Scheme::HTTP) || url.host().is_none() {
            return Err("callback.url: must begin with http:// and a host".to_owned());
        }
        Ok(Timer {
            due: Due { at: at.as_microsecond(), id },
            url: self.callback.url.into_owned(),
            body: self.callback.payload.get().as_bytes().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(execute_at: &str, url: &str) -> Result<Timer, String> {
        let text = format!(
            r#"{{"execute_at":"{execute_at}","namespace":"a","callback":{{"type":"http","url":"{url}","payload":{{"n":[1, 2]}}}}}}"#
        );
        serde_json::from_str::<Create<'_>>(&text).unwrap().parse(7)
    }

    #[test]
    fn a_timer_has_its_due_time_its_url_and_its_payload_as_it_was_written() {
        let timer = parse("2030-01-31T10:30:00.500150Z", "http://127.0.0.1:2/7/1").unwrap();
        assert_eq!((timer.due, timer.due.minute()), (Due { at: 1_896_085_800_500_150, id: 7 }, 31_601_430));
        assert_eq!((timer.url.as_str(), timer.body.as_slice()), ("http://127.0.0.1:2/7/1", br#"{"n":[1, 2]}"#.as_slice()));
    }

    #[test]
    fn what_cannot_be_called_or_is_never_due_is_refused() {
        for (execute_at, url) in [
            ("tomorrow", "http://127.0.0.1"),
            ("2030-01-31T10:30:00Z", "https://127.0.0.1"),
            ("2030-01-31T10:30:00Z", "/7/1"),
            ("2030-01-31T10:30:00Z", ""),
        ] {
            assert!(parse(execute_at, url).is_err(), "{execute_at} {url}");
        }
    }
}
