use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

/// What an HTTP receiver answered to an attempt, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceivedAnswer {
    /// Some headers that help to understand it, by their names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: AnswerBody,
}

/// How the body of an answer begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerBody {
    Text(String),
    /// It is not UTF-8.
    Bytes(Vec<u8>),
}

/// How it is stored, as a part of JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl ReceivedAnswer {
    /// Makes the record of an answer that began with `body`. A character that is cut off at its end is left out.
    pub fn new(headers: Vec<(String, String)>, body: &[u8]) -> Self {
        let body = match std::str::from_utf8(body) {
            Ok(text) => AnswerBody::Text(text.to_owned()),
            Err(error) if error.error_len().is_none() => {
                AnswerBody::Text(String::from_utf8_lossy(&body[..error.valid_up_to()]).into_owned())
            }
            Err(_) => AnswerBody::Bytes(body.to_vec()),
        };
        Self { headers, body }
    }

    pub fn bytes(&self) -> usize {
        match &self.body {
            AnswerBody::Text(text) => text.len(),
            AnswerBody::Bytes(bytes) => bytes.len(),
        }
    }

    pub(crate) fn to_stored(&self) -> StoredAnswer {
        let (text, base64) = match &self.body {
            AnswerBody::Text(text) => (Some(text.clone()), None),
            AnswerBody::Bytes(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        StoredAnswer { headers: self.headers.clone(), text, base64 }
    }

    /// What [`to_stored`](Self::to_stored) made; `None` if it did not.
    pub(crate) fn from_stored(StoredAnswer { headers, text, base64 }: StoredAnswer) -> Option<Self> {
        let body = match (text, base64) {
            (Some(text), _) => AnswerBody::Text(text),
            (None, Some(encoded)) => AnswerBody::Bytes(STANDARD.decode(encoded).ok()?),
            (None, None) => return None,
        };
        Some(Self { headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_text_where_it_can_be() {
        let header = || vec![("content-type".to_owned(), "text/plain".to_owned())];
        for (bytes, body) in [
            (&b""[..], AnswerBody::Text(String::new())),
            ("é\u{0} \"x\"".as_bytes(), AnswerBody::Text("é\u{0} \"x\"".to_owned())),
            (&"é".as_bytes()[..1], AnswerBody::Text(String::new())),
            (b"\xff\x00", AnswerBody::Bytes(vec![0xff, 0])),
        ] {
            let answer = ReceivedAnswer::new(header(), bytes);
            assert_eq!(answer.body, body);
            assert_eq!(ReceivedAnswer::from_stored(answer.to_stored()), Some(answer));
        }
    }
}
