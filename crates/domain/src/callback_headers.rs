//! What a receiver is told about a timer, in headers, whichever way it is called.

use std::{borrow::Cow, fmt::Write};

use crate::Timer;

/// The header with the timer's id, in callbacks and events.
pub const TIMER_ID_HEADER: &str = "X-Timer-Id";
/// The header with the time of the call, in callbacks only.
pub const CALL_TIME_HEADER: &str = "webhook-timestamp";

impl Timer {
    /// The headers that describe its attempt with this number (1 for the first).
    pub fn callback_headers(&self, attempt: u32) -> [(&'static str, String); 5] {
        [
            (TIMER_ID_HEADER, self.id().to_string()),
            ("X-Timer-Namespace", in_header(self.definition.namespace.as_str()).into_owned()),
            ("X-Timer-Attempt", attempt.to_string()),
            ("X-Timer-Scheduled-At", self.execute_at.to_string()),
            ("webhook-id", self.webhook_id()),
        ]
    }

    /// The header with the caller's correlation id, if there is one.
    pub fn correlation_header(&self) -> Option<(&'static str, String)> {
        let id = self.definition.correlation_id.as_ref()?;
        Some(("X-Correlation-Id", in_header(id.as_str()).into_owned()))
    }
}

/// Text as a header may carry it: what is not visible ASCII is percent-encoded byte by byte, and so is `%` itself, which
/// makes the original recoverable.
fn in_header(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e) && byte != b'%';
    if text.bytes().all(is_plain) {
        return text.into();
    }
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits_into_a_header() {
        for (text, encoded) in [
            ("default", "default"),
            ("a/b:c~", "a/b:c~"),
            ("a b", "a%20b"),
            ("100%", "100%25"),
            ("é", "%C3%A9"),
            ("😀", "%F0%9F%98%80"),
            ("a\u{85}b", "a%C2%85b"),
        ] {
            assert_eq!(in_header(text), encoded);
        }
    }
}
