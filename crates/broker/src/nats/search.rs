//! Finds commands that end the connection whenever they are delivered, and dead-letters them.
//!
//! ```text
//!   deliver ──▶ unreadable: the connection ends ──▶ (once it is back) what was delivered and has no verdict
//!                                                        │ read in a form that is always readable
//!                                                        ├─ readable: left alone, it comes again
//!                                                        └─ not: dead letter, then removed from the stream
//! ```
//!
//! Without this search, a single such command would be redelivered for ever, and each time lose whatever comes behind it.

use std::ops::RangeInclusive;

use ::nats::Connection;
use async_nats::jetstream::{AckKind, Context, consumer, stream::RawMessage};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use domain::Cause;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    dead_letters::Dead,
    jetstream_api,
    readable::rule_broken_by,
    settings::{COMMANDS, CONSUMER, WITHOUT_VERDICT_MAX},
};
use crate::BrokerError;

/// The messages that are read at the same time; each may be as large as the server allows.
const IN_FLIGHT_MAX: usize = 32;
/// A search looks at no more than this multiple of the commands that may be without a verdict.
const WINDOW_FACTOR: u64 = 2;
const SUBJECT_NOT_UTF8: &str = "subject must be UTF-8";

pub(super) struct Search {
    /// Whether an unreadable command is suspected. At the start it is: the previous process may have died of one.
    is_due: bool,
    /// The sequence at which the last search ended.
    looked_up_to: Option<u64>,
}

impl Default for Search {
    fn default() -> Self {
        Self { is_due: true, looked_up_to: None }
    }
}

#[derive(Deserialize)]
struct Found {
    message: RawMessage,
}

struct Unreadable {
    message: RawMessage,
    rule: &'static str,
}

impl Search {
    /// Records that commands have stopped coming, of which an unreadable one is a possible cause.
    pub(super) const fn suspect(&mut self) {
        self.is_due = true;
    }

    /// Searches if an unreadable command is suspected. Is safe to cancel. A failure is only logged: the fetch reports whether
    /// the broker is away.
    pub(super) async fn run(&mut self, connection: &Connection, context: &Context) {
        if !self.is_due {
            return;
        }
        match self.look(connection, context).await {
            Ok(()) => self.is_due = false,
            Err(error) => {
                tracing::warn!(%error, "the search for unreadable commands failed: one that exists stops all commands behind it");
            }
        }
    }

    async fn look(&mut self, connection: &Connection, context: &Context) -> Result<(), BrokerError> {
        let Some(consumer) = jetstream_api::find_consumer(context).await? else { return Ok(()) };
        let window = window(&consumer, self.looked_up_to);
        // A future that waits for capacity in the client's queue keeps all later ones waiting until it is polled again. So
        // everything is awaited in here, and nothing in the loop below.
        let looks = stream::iter(window).map(async |sequence| {
            if let Some(unreadable) = unreadable(context, sequence).await? {
                unreadable.put_aside(connection, context).await?;
            }
            Ok(sequence)
        });
        let mut looks = std::pin::pin!(looks.buffered(IN_FLIGHT_MAX));
        while let Some(looked) = looks.next().await {
            self.looked_up_to = Some(looked?);
        }
        Ok(())
    }
}

/// The sequences that a search looks at: all that were delivered and may have no verdict, or a part of them when they are many.
/// The latest come first then, and each search goes on where the last one ended.
fn window(consumer: &consumer::Info, looked_up_to: Option<u64>) -> RangeInclusive<u64> {
    let allowed = Some(consumer.config.max_ack_pending).filter(|max| *max > 0).unwrap_or(WITHOUT_VERDICT_MAX);
    let max = WINDOW_FACTOR * allowed.min(WITHOUT_VERDICT_MAX).unsigned_abs();
    window_of(consumer.ack_floor.stream_sequence, consumer.delivered.stream_sequence, looked_up_to, max)
}

fn window_of(settled: u64, delivered: u64, looked_up_to: Option<u64>, max: u64) -> RangeInclusive<u64> {
    if delivered.saturating_sub(settled) <= max {
        return settled + 1..=delivered;
    }
    let first = match looked_up_to {
        None => delivered - max + 1,
        Some(looked) if (settled..delivered).contains(&looked) => looked + 1,
        Some(_) => settled + 1,
    };
    first..=delivered.min(first + max - 1)
}

/// Reads a message with the request whose answer is always readable, and says whether its delivery would not be.
async fn unreadable(context: &Context, sequence: u64) -> Result<Option<Unreadable>, BrokerError> {
    let Some(message) = get(context, &json!({ "seq": sequence })).await? else { return Ok(None) };
    // Headers that cannot be decoded here are left to the normal delivery.
    let headers = message.headers.as_ref().and_then(|headers| STANDARD.decode(headers).ok());
    if let Some(rule) = rule_broken_by(&message.subject, headers.as_deref()) {
        return Ok(Some(Unreadable { message, rule }));
    }
    // The server shows bytes that are not UTF-8 as this character. A lookup by the shown subject tells whether the character
    // itself is meant.
    if message.subject.contains(char::REPLACEMENT_CHARACTER) {
        let as_shown = get(context, &json!({ "seq": sequence, "next_by_subj": message.subject })).await?;
        if as_shown.is_none_or(|found| found.sequence != sequence) {
            return Ok(Some(Unreadable { message, rule: SUBJECT_NOT_UTF8 }));
        }
    }
    Ok(None)
}

async fn get(context: &Context, which: &Value) -> Result<Option<RawMessage>, BrokerError> {
    let found: Option<Found> = jetstream_api::ask(context, format!("STREAM.MSG.GET.{COMMANDS}"), which).await?;
    Ok(found.map(|found| found.message))
}

impl Unreadable {
    /// Stores the dead letter before the message is removed. When it cannot be stored the message stays, but is not delivered
    /// any more.
    async fn put_aside(&self, connection: &Connection, context: &Context) -> Result<(), BrokerError> {
        let RawMessage { subject, sequence, payload, time, .. } = &self.message;
        let body = Bytes::from(STANDARD.decode(payload).unwrap_or_default());
        let (sequence, published_nanos, reason) = (*sequence, time.unix_timestamp_nanos(), self.rule);
        let dead = Dead { subject, sequence, published_nanos, body: &body, reason };
        let result = match dead.keep(connection, context.client().max_payload()).await {
            Ok(()) => remove(context, sequence).await,
            refused => refused,
        };
        match result {
            Ok(()) => tracing::warn!(
                nats.subject = subject,
                nats.sequence = sequence,
                reason,
                "a command cannot be read and is dead-lettered"
            ),
            Err(error @ BrokerError::Away(_)) => return Err(error),
            Err(error) => {
                tracing::error!(
                    nats.subject = subject,
                    nats.sequence = sequence,
                    reason,
                    %error,
                    "a command cannot be read and not be dead-lettered: it stays in the stream and is not delivered any more"
                );
                terminate(context, sequence).await?;
            }
        }
        metrics::counter!("timer_commands_total", "result" => "dead").increment(1);
        Ok(())
    }
}

async fn remove(context: &Context, sequence: u64) -> Result<(), BrokerError> {
    let which = json!({ "seq": sequence, "no_erase": true });
    jetstream_api::ask::<IgnoredAny>(context, format!("STREAM.MSG.DELETE.{COMMANDS}"), &which).await.map(drop)
}

/// Terminates a message whose delivery could not be read. Of its ack subject only the sequence in the stream counts.
async fn terminate(context: &Context, sequence: u64) -> Result<(), BrokerError> {
    let address = format!("$JS.ACK.{COMMANDS}.{CONSUMER}.1.{sequence}.1.1.0");
    let told = context.client().publish(address, AckKind::Term.into()).await;
    told.map_err(|error| BrokerError::Away(Cause::of(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_looks_at_all_that_may_have_no_verdict_or_goes_through_it_in_parts() {
        for (settled, delivered, looked_up_to, expected) in [
            (0, 0, None, vec![]),
            (7, 7, Some(7), vec![]),
            // A consumer that was reset.
            (9, 7, None, vec![]),
            (0, 4, None, vec![1, 2, 3, 4]),
            (3, 7, Some(6), vec![4, 5, 6, 7]),
            (0, 10, None, vec![7, 8, 9, 10]),
            (0, 10, Some(10), vec![1, 2, 3, 4]),
            (0, 10, Some(4), vec![5, 6, 7, 8]),
            (0, 10, Some(8), vec![9, 10]),
            (5, 10, Some(2), vec![6, 7, 8, 9]),
            (0, 10, Some(50), vec![1, 2, 3, 4]),
        ] {
            let window: Vec<_> = window_of(settled, delivered, looked_up_to, 4).collect();
            assert_eq!(window, expected, "{settled} {delivered} {looked_up_to:?}");
        }
    }
}
