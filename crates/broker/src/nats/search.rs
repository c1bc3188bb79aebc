//! Looks for commands that end the connection whenever they are delivered, and puts them aside.
//!
//! ```text
//!   deliver ──▶ unreadable: the connection ends ──▶ (once it is back) what was delivered and has no verdict
//!                                                        │ read in a form that is always readable
//!                                                        ├─ readable: left alone, it comes again
//!                                                        └─ not: dead letter, then removed from the stream
//! ```
//!
//! Without this, a single such command would come again for ever, and each time take along whatever comes behind it.

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
    readable::rule_broken_by,
    settings::{COMMANDS, CONSUMER, WITHOUT_VERDICT_MAX},
    setup,
};
use crate::BrokerError;

/// Each may be as large as a message can be.
const IN_FLIGHT_MAX: usize = 32;
/// A search looks at no more than so many times what may be without a verdict.
const WINDOW_FACTOR: u64 = 2;
const SUBJECT_NOT_UTF8: &str = "subject must be UTF-8";

pub(super) struct Search {
    /// Whether there is a reason to suspect something. At the start there is: the process before may have died of it.
    is_due: bool,
    /// Where the last one ended.
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
    /// Commands stopped coming. That may have many reasons; this is one.
    pub(super) const fn suspect(&mut self) {
        self.is_due = true;
    }

    /// Searches when there is a reason to. Can be canceled. What fails is logged: whether there is a broker is for others to find
    /// out.
    pub(super) async fn run(&mut self, connection: &Connection, context: &Context) {
        if !self.is_due {
            return;
        }
        match self.look(connection, context).await {
            Ok(()) => self.is_due = false,
            Err(error) => {
                tracing::warn!(%error, "commands that cannot be read could not be looked for: if there is one, it stops the others");
            }
        }
    }

    async fn look(&mut self, connection: &Connection, context: &Context) -> Result<(), BrokerError> {
        let Some(consumer) = setup::find_consumer(context).await? else { return Ok(()) };
        let window = window(&consumer, self.looked_up_to);
        // Whatever waits for its turn at the client has to be polled until it had it, or nobody else ever has one: that is why
        // everything is done in here, and nothing in the loop below.
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

/// What a search looks at: everything that was delivered and may have no verdict, or a part of it when that is a lot. Then the
/// latest comes first, and one search goes on where the last one ended.
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

/// Reads a message the way that always works, and says whether the usual way does not.
async fn unreadable(context: &Context, sequence: u64) -> Result<Option<Unreadable>, BrokerError> {
    let Some(message) = get(context, &json!({ "seq": sequence })).await? else { return Ok(None) };
    // What cannot even be told is left to the usual way.
    let headers = message.headers.as_ref().and_then(|headers| STANDARD.decode(headers).ok());
    if let Some(rule) = rule_broken_by(&message.subject, headers.as_deref()) {
        return Ok(Some(Unreadable { message, rule }));
    }
    // This is how bytes are shown that are no text. Whether it is meant so tells a search for the subject as it is shown.
    if message.subject.contains(char::REPLACEMENT_CHARACTER) {
        let as_shown = get(context, &json!({ "seq": sequence, "next_by_subj": message.subject })).await?;
        if as_shown.is_none_or(|found| found.sequence != sequence) {
            return Ok(Some(Unreadable { message, rule: SUBJECT_NOT_UTF8 }));
        }
    }
    Ok(None)
}

async fn get(context: &Context, which: &Value) -> Result<Option<RawMessage>, BrokerError> {
    let found: Option<Found> = setup::ask(context, format!("STREAM.MSG.GET.{COMMANDS}"), which).await?;
    Ok(found.map(|found| found.message))
}

impl Unreadable {
    /// The copy is there before the message goes. When there can be no copy the message stays, but is not delivered any more.
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
                "a command cannot be read and is put aside"
            ),
            Err(error @ BrokerError::Away(_)) => return Err(error),
            Err(error) => {
                tracing::error!(
                    nats.subject = subject,
                    nats.sequence = sequence,
                    reason,
                    %error,
                    "a command cannot be read and not be put aside: it stays in the stream and is not delivered any more"
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
    setup::ask::<IgnoredAny>(context, format!("STREAM.MSG.DELETE.{COMMANDS}"), &which).await.map(drop)
}

/// Gives the verdict on a message whose delivery nobody could read. Of its address only the sequence in the stream counts.
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
