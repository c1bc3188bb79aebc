use serde::{Deserialize, Serialize};

use crate::{ReceivedAnswer, Span, Timestamp, limits, received_answer::StoredAnswer};

/// A recorded delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The name of the node that made it, where it is known.
    pub node: Option<String>,
    /// What the receiver answered, where that is kept.
    pub answer: Option<ReceivedAnswer>,
}

/// What stores keep in one column, because no query looks into it. Its members are named as they were when it was the answer alone.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(flatten)]
    answer: StoredAnswer,
}

impl Attempt {
    /// The node and the answer, as the text that stores keep; `None` where neither is known.
    pub fn kept_text(&self) -> Option<String> {
        if self.node.is_none() && self.answer.is_none() {
            return None;
        }
        let answer = self.answer.as_ref().map(ReceivedAnswer::to_stored).unwrap_or_default();
        // Texts and lists of texts can always be written.
        serde_json::to_string(&Kept { node: self.node.clone(), answer }).ok()
    }

    /// The same with what [`kept_text`](Self::kept_text) wrote; nothing is added where it did not.
    #[must_use]
    pub fn with_kept(self, text: Option<&str>) -> Self {
        match text.and_then(|text| serde_json::from_str::<Kept>(text).ok()) {
            Some(Kept { node, answer }) => Self { node, answer: ReceivedAnswer::from_stored(answer), ..self },
            None => self,
        }
    }

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
    fn what_is_kept_as_text_reads_back_as_it_was() {
        let plain = Attempt {
            number: 1,
            started_at: Timestamp::from_micros(0),
            took: Span::ZERO,
            outcome: "delivered".to_owned(),
            status: Some(200),
            detail: None,
            node: None,
            answer: None,
        };
        let header = || vec![("server".to_owned(), "x".to_owned())];
        let answers =
            [None, Some(ReceivedAnswer::new(header(), "\u{0} \"é\"".as_bytes())), Some(ReceivedAnswer::new(Vec::new(), b"\xff"))];
        for node in [None, Some("host-1:8080 \"é\"".to_owned())] {
            for answer in &answers {
                let attempt = Attempt { node: node.clone(), answer: answer.clone(), ..plain.clone() };
                let text = attempt.kept_text();
                assert_eq!(text.is_none(), attempt == plain);
                assert!(!text.as_deref().unwrap_or_default().contains('\0'), "PostgreSQL takes no such text: {text:?}");
                assert_eq!(plain.clone().with_kept(text.as_deref()), attempt);
            }
        }
        assert_eq!(plain.clone().with_kept(Some("{")), plain);
        let older = plain.clone().with_kept(Some(r#"{"headers":[["server","x"]],"text":""}"#));
        assert_eq!((older.node, older.answer), (None, Some(ReceivedAnswer::new(header(), b""))));
    }

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
