//! Dead letters: how commands that can never work are stored.

use ::nats::{Connection, Outgoing};
use bytes::Bytes;

use super::{of_publishing, settings::DEAD_SUBJECT};
use crate::BrokerError;

const REASON_CHARS_MAX: usize = 500;
/// The size of the fixed parts of a dead letter: the names of its headers, and its id.
const HEADERS_BYTES_MAX: usize = 250;

/// A command that is about to be dead-lettered.
pub(super) struct Dead<'a> {
    pub(super) subject: &'a str,
    pub(super) sequence: u64,
    pub(super) published_nanos: i128,
    pub(super) body: &'a Bytes,
    pub(super) reason: &'a str,
}

impl Dead<'_> {
    /// Publishes the dead letter; `Ok` once the stream has stored it. A letter that is refused is published again without its
    /// body: the reason alone is better than no trace.
    pub(super) async fn keep(&self, connection: &Connection, bytes_max: usize) -> Result<(), BrokerError> {
        // The time distinguishes the command from one with the same sequence in a stream that was deleted and created again.
        let id = format!("dead-{}-{}", self.sequence, self.published_nanos);
        let refusal = match connection.publish_to_stream(self.letter(bytes_max), &id).await.map_err(of_publishing) {
            Ok(_) => return Ok(()),
            Err(error @ BrokerError::Away(_)) => return Err(error),
            Err(refusal) => refusal,
        };
        if self.body.is_empty() {
            return Err(refusal);
        }
        connection.publish_to_stream(self.letter(0), &id).await.map(drop).map_err(of_publishing)
    }

    /// The dead letter. Its body is cut when body and headers together would exceed the limit.
    fn letter(&self, bytes_max: usize) -> Outgoing {
        let mut headers = vec![
            ("X-Timer-Reason".to_owned(), in_one_line(self.reason).take(REASON_CHARS_MAX).collect()),
            ("X-Timer-Subject".to_owned(), in_one_line(self.subject).collect::<String>()),
            ("X-Timer-Sequence".to_owned(), self.sequence.to_string()),
        ];
        let values: usize = headers.iter().map(|(_, value)| value.len()).sum();
        let room = bytes_max.saturating_sub(values + HEADERS_BYTES_MAX);
        if self.body.len() > room {
            headers.push(("X-Timer-Truncated".to_owned(), "true".to_owned()));
        }
        Outgoing { subject: DEAD_SUBJECT.to_owned(), headers, payload: self.body.slice(..self.body.len().min(room)) }
    }
}

fn in_one_line(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if c.is_control() { ' ' } else { c })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(reason: &str, body: &Bytes, bytes_max: usize) -> Outgoing {
        let (subject, sequence, published_nanos) = ("timer.commands.schedule", 7, 1);
        Dead { subject, sequence, published_nanos, body, reason }.letter(bytes_max)
    }

    fn header<'a>(letter: &'a Outgoing, name: &str) -> Option<&'a str> {
        letter.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_dead_letter_says_what_it_was_and_why_it_died() {
        let body = Bytes::from_static(b"\xffnonsense");
        let letter = letter("message must\r\nbe UTF-8", &body, 1 << 20);
        assert_eq!((letter.subject.as_str(), &letter.payload), (DEAD_SUBJECT, &body));
        assert_eq!(header(&letter, "X-Timer-Reason"), Some("message must  be UTF-8"));
        assert_eq!(header(&letter, "X-Timer-Subject"), Some("timer.commands.schedule"));
        assert_eq!(header(&letter, "X-Timer-Sequence"), Some("7"));
        assert_eq!(header(&letter, "X-Timer-Truncated"), None);
    }

    #[test]
    fn a_long_reason_is_cut() {
        let letter = letter(&"é".repeat(1000), &Bytes::new(), 1 << 20);
        assert_eq!(header(&letter, "X-Timer-Reason").map(|reason| reason.chars().count()), Some(REASON_CHARS_MAX));
    }

    #[test]
    fn a_body_that_would_exceed_the_limit_with_its_headers_is_cut() {
        for (body_bytes, bytes_max, is_cut) in
            [(1000, 2000, false), (1900, 2000, true), (2000, 2000, true), (10, 100, true), (10, 0, true), (0, 0, false)]
        {
            let letter = letter("why", &Bytes::from(vec![b'x'; body_bytes]), bytes_max);
            let headers: usize = letter.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
            let id = "Nats-Msg-Id: dead-18446744073709551615-1893456000000000000\r\n".len();
            let total = letter.payload.len() + headers + id + "NATS/1.0\r\n\r\n".len();
            assert!(total <= bytes_max || letter.payload.is_empty(), "{body_bytes}: {total} of {bytes_max}");
            assert_eq!(header(&letter, "X-Timer-Truncated").is_some(), is_cut, "{body_bytes}");
        }
    }
}
