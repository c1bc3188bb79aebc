//! A command as NATS delivered it, and how it becomes a dead letter.

use std::time::Duration;

use ::nats::Connection;
use async_nats::jetstream::{AckKind, Message};
use async_trait::async_trait;
use domain::{CALL_TIME_HEADER, Cause, TIMER_ID_HEADER, TRACEPARENT, TRACESTATE, TraceContext};
use tokio::time::timeout;

use super::{dead_letters::Dead, not_connected};
use crate::{BrokerError, Received, Verdict, backoff::again_after};

/// A client without a connection accepts no more messages once its buffer is full.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(5);
/// A command whose dead letter is refused this often gets none. It must not be redelivered for ever.
const DELIVERIES_WITHOUT_LETTER_MAX: u32 = 10;

pub(super) struct NatsReceived {
    connection: Connection,
    message: Message,
    sequence: u64,
    published_nanos: i128,
    deliveries: u32,
}

impl NatsReceived {
    /// `None` when the message does not come from a consumer, which only a forged message brings about.
    pub(super) fn new(connection: &Connection, message: Message) -> Option<Self> {
        let info = message.info().ok()?;
        let (sequence, published_nanos) = (info.stream_sequence, info.published.unix_timestamp_nanos());
        let deliveries = u32::try_from(info.delivered).unwrap_or(1);
        Some(Self { connection: connection.clone(), message, sequence, published_nanos, deliveries })
    }

    /// Does not wait for the server's confirmation: a lost verdict means a redelivery, which does no harm.
    async fn answer(&self, kind: AckKind) -> Result<(), BrokerError> {
        if !self.connection.is_connected() {
            return Err(not_connected(&self.connection));
        }
        match timeout(HANDED_OVER_WITHIN, self.message.ack_with(kind)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(BrokerError::Away(Cause::of(error))),
            Err(_) => Err(not_connected(&self.connection)),
        }
    }

    /// Stores the dead letter before the command is terminated, so that at any time at least one of them exists.
    async fn dead_letter(&self, reason: &str) -> Result<(), BrokerError> {
        let Self { sequence, published_nanos, deliveries, .. } = *self;
        let (subject, body) = (self.message.subject.as_str(), &self.message.payload);
        let dead = Dead { subject, sequence, published_nanos, body, reason };
        match dead.keep(&self.connection, self.message.context.client().max_payload()).await {
            Ok(()) => self.answer(AckKind::Term).await,
            Err(error @ BrokerError::Away(_)) => self.nak_after(error).await,
            Err(error) if deliveries < DELIVERIES_WITHOUT_LETTER_MAX => self.nak_after(error).await,
            Err(error) => {
                tracing::error!(
                    nats.subject = subject,
                    nats.sequence = sequence,
                    reason,
                    %error,
                    "a command can never work and not be dead-lettered: it stays in the stream and is not delivered any more"
                );
                self.answer(AckKind::Term).await
            }
        }
    }

    async fn nak_after(&self, error: BrokerError) -> Result<(), BrokerError> {
        self.answer(AckKind::Nak(Some(again_after(self.deliveries)))).await?;
        Err(error)
    }
}

#[async_trait]
impl Received for NatsReceived {
    fn body(&self) -> &[u8] {
        &self.message.payload
    }

    /// Decides by the headers that every callback carries. They survive subject mappings, which the operator may configure and
    /// this service cannot see.
    fn is_callback(&self) -> bool {
        let headers = self.message.headers.as_ref();
        headers.is_some_and(|headers| [TIMER_ID_HEADER, CALL_TIME_HEADER].iter().all(|name| headers.get(*name).is_some()))
    }

    fn trace(&self) -> Option<TraceContext> {
        let headers = self.message.headers.as_ref()?;
        let context = TraceContext::parse(headers.get(TRACEPARENT)?.as_str())?;
        Some(context.with_state(headers.get(TRACESTATE).map_or("", |state| state.as_str())))
    }

    fn deliveries(&self) -> u32 {
        self.deliveries
    }

    async fn settle(self: Box<Self>, verdict: Verdict) -> Result<(), BrokerError> {
        match verdict {
            Verdict::Done => self.answer(AckKind::Ack).await,
            Verdict::Later { after } => self.answer(AckKind::Nak(Some(after).filter(|after| !after.is_zero()))).await,
            Verdict::Never { reason } => self.dead_letter(&reason).await,
        }
    }
}
