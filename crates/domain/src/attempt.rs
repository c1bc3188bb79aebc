use crate::{ReceivedAnswer, Span, Timestamp, limits};

/// A recorded delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Attempt {
    /// 1 for the first attempt of its due time.
    pub number: u32,
    pub started_at: Timestamp,
    pub took: Span,
    /// A short name of the result: `delivered`, `timeout`, `status_5xx` …
    pub outcome: String,
    /// The status that an HTTP receiver answered, if it did.
    pub status: Option<u16>,
    /// The first characters of the answer, or of the reason why there was none.
    pub detail: Option<String>,
    /// What the receiver answered, where that is kept.
    pub answer: Option<ReceivedAnswer>,
}

impl Attempt {
    /// The recorded part of an answer or a reason: its beginning, in characters that can be shown and stored.
    pub fn excerpt(bytes: &[u8]) -> Option<String> {
        // A character has at most four bytes.
        let most = bytes.len().min(limits::ATTEMPT_DETAIL_CHARS_MAX * 4);
        let text = String::from_utf8_lossy(&bytes[..most]);
        let shown: String =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limits::ATTEMPT_DETAIL_CHARS_MAX).collect();
        (!shown.trim().is_empty()).then_some(shown)
    }
}

/// Which attempts are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttemptLog {
    Nothing,
    /// Those that did not deliver.
    #[default]
    Failures,
    Everything,
}

impl AttemptLog {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Nothing),
            "failures" => Some(Self::Failures),
            "all" => Some(Self::Everything),
            _ => None,
        }
    }

    pub const fn wants(self, is_delivered: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Failures => !is_delivered,
            Self::Everything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_can_be_shown() {
        for (bytes, excerpt) in [
            (&b""[..], None),
            (b" \r\n", None),
            (b"out of\r\nstock\x00", Some("out of  stock ")),
            (b"\xff\xfe", Some("\u{fffd}\u{fffd}")),
            ("é".as_bytes(), Some("é")),
        ] {
            assert_eq!(Attempt::excerpt(bytes).as_deref(), excerpt);
        }
        let long = Attempt::excerpt("é".repeat(10_000).as_bytes()).unwrap();
        assert_eq!(long.chars().count(), limits::ATTEMPT_DETAIL_CHARS_MAX);
    }

    #[test]
    fn which_attempts_are_recorded_is_a_matter_of_choice() {
        for (text, delivered, failed) in [("off", false, false), ("failures", false, true), ("all", true, true)] {
            let attempt_log = AttemptLog::parse(text).unwrap();
            assert_eq!((attempt_log.wants(true), attempt_log.wants(false)), (delivered, failed), "{text}");
        }
        assert_eq!(AttemptLog::parse("some"), None);
    }
}
