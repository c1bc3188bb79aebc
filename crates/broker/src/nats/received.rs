//! A command as NATS delivered it, and its way to the dead letters.

use std::time::Duration;

use ::nats::{Connection, Outgoing};
use async_nats::jetstream::{AckKind, Message};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::timeout;

use super::{not_connected, of_publishing, settings::DEAD_SUBJECT};
use crate::{BrokerError, Received, Verdict, backoff::again_after};

/// A client without a connection takes nothing any more once its buffer is full.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(5);
const REASON_CHARS_MAX: usize = 500;
/// What a dead letter has beside the body and the values that are counted: names of headers, and its id.
const HEADERS_BYTES_MAX: usize = 250;

pub(super) struct NatsReceived {
    connection: Connection,
    message: Message,
    sequence: u64,
    published_nanos: i128,
    deliveries: u32,
}

impl NatsReceived {
    /// `None` when it does not come from a consumer, which nobody brings about by accident.
    pub(super) fn new(connection: &Connection, message: Message) -> Option<Self> {
        let info = message.info().ok()?;
        let (sequence, published_nanos) = (info.stream_sequence, info.published.unix_timestamp_nanos());
        let deliveries = u32::try_from(info.delivered).unwrap_or(1);
        Some(Self { connection: connection.clone(), message, sequence, published_nanos, deliveries })
    }

    /// Whether the server has heard it is not asked: an answer that gets lost means another delivery, which does no harm.
    async fn answer(&self, kind: AckKind) -> Result<(), BrokerError> {
        if !self.connection.is_connected() {
            return Err(not_connected(&self.connection));
        }
        match timeout(HANDED_OVER_WITHIN, self.message.ack_with(kind)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(BrokerError::Away(error.to_string())),
            Err(_) => Err(not_connected(&self.connection)),
        }
    }

    /// The copy is there before the command goes, so that there is never a time without either.
    async fn bury(&self, reason: &str) -> Result<(), BrokerError> {
        let bytes_max = self.message.context.client().max_payload();
        let letter = dead_letter(reason, &self.message.subject, self.sequence, &self.message.payload, bytes_max);
        // The time tells it from a namesake in a stream that was deleted and made again.
        let id = format!("dead-{}-{}", self.sequence, self.published_nanos);
        if let Err(error) = self.connection.publish_to_stream(letter, &id).await {
            self.answer(AckKind::Nak(Some(again_after(self.deliveries)))).await?;
            return Err(of_publishing(error));
        }
        self.answer(AckKind::Term).await
    }
}

#[async_trait]
impl Received for NatsReceived {
    fn body(&self) -> &[u8] {
        &self.message.payload
    }

    fn deliveries(&self) -> u32 {
        self.deliveries
    }

    async fn settle(self: Box<Self>, verdict: Verdict) -> Result<(), BrokerError> {
        match verdict {
            Verdict::Done => self.answer(AckKind::Ack).await,
            Verdict::Later { after } => self.answer(AckKind::Nak(Some(after).filter(|after| !after.is_zero()))).await,
            Verdict::Never { reason } => self.bury(&reason).await,
        }
    }
}

/// A command as it is put aside: its body, cut when the headers leave no room for all of it.
fn dead_letter(reason: &str, subject: &str, sequence: u64, body: &Bytes, bytes_max: usize) -> Outgoing {
    let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_CHARS_MAX).collect();
    let mut headers = vec![
        ("X-Timer-Reason".to_owned(), reason),
        ("X-Timer-Subject".to_owned(), subject.to_owned()),
        ("X-Timer-Sequence".to_owned(), sequence.to_string()),
    ];
    let values: usize = headers.iter().map(|(_, value)| value.len()).sum();
    let room = bytes_max.saturating_sub(values + HEADERS_BYTES_MAX);
    if body.len() > room {
        headers.push(("X-Timer-Truncated".to_owned(), "true".to_owned()));
    }
    Outgoing { subject: DEAD_SUBJECT.to_owned(), headers, payload: body.slice(..body.len().min(room)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>(letter: &'a Outgoing, name: &str) -> Option<&'a str> {
        letter.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_dead_letter_says_what_it_was_and_why_it_died() {
        let body = Bytes::from_static(b"\xffnonsense");
        let letter = dead_letter("message must\r\nbe UTF-8", "timer.commands.schedule", 7, &body, 1 << 20);
        assert_eq!((letter.subject.as_str(), &letter.payload), (DEAD_SUBJECT, &body));
        assert_eq!(header(&letter, "X-Timer-Reason"), Some("message must  be UTF-8"));
        assert_eq!(header(&letter, "X-Timer-Subject"), Some("timer.commands.schedule"));
        assert_eq!(header(&letter, "X-Timer-Sequence"), Some("7"));
        assert_eq!(header(&letter, "X-Timer-Truncated"), None);
    }

    #[test]
    fn a_long_reason_is_cut() {
        let letter = dead_letter(&"é".repeat(1000), "timer.commands.a", 1, &Bytes::new(), 1 << 20);
        assert_eq!(header(&letter, "X-Timer-Reason").map(|reason| reason.chars().count()), Some(REASON_CHARS_MAX));
    }

    #[test]
    fn a_body_that_leaves_no_room_for_the_headers_is_cut() {
        for (body_bytes, bytes_max, is_cut) in [(1000, 2000, false), (1900, 2000, true), (2000, 2000, true), (10, 100, true)] {
            let letter = dead_letter("why", "timer.commands.a", 1, &Bytes::from(vec![b'x'; body_bytes]), bytes_max);
            let headers: usize = letter.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
            let id = "Nats-Msg-Id: dead-18446744073709551615-1893456000000000000\r\n".len();
            let total = letter.payload.len() + headers + id + "NATS/1.0\r\n\r\n".len();
            assert!(total <= bytes_max || letter.payload.is_empty(), "{body_bytes}: {total} of {bytes_max}");
            assert_eq!(header(&letter, "X-Timer-Truncated").is_some(), is_cut, "{body_bytes}");
        }
    }
}
