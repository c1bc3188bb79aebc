use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Cause, Namespace, TraceContext};

/// What the consumer needs of a message broker, independent of any product.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Waits for commands, and returns at most `max` of them, oldest first. The answer may be empty after a quiet while.
    ///
    /// Is safe to cancel: commands that were fetched and not handed out come with the next call, or are given back. A command
    /// that was handed out belongs to this process until it is settled; one that is dropped without a verdict is redelivered in
    /// the end.
    async fn receive(&self, max: usize) -> Result<Vec<Box<dyn Received>>, BrokerError>;

    /// Fetches no more commands, and gives back those that were fetched and not handed out, so that another process gets them
    /// at once. `Ok` means that every verdict given before has reached the broker. A later `receive` starts fetching again.
    async fn give_back(&self) -> Result<(), BrokerError>;

    /// Publishes an event. `Ok` means that the broker has stored it durably; after an error it may or may not have it. The
    /// broker deduplicates events by their id within its duplicate window.
    async fn publish(&self, event: Event) -> Result<(), BrokerError>;
}

/// A command that was received and awaits its verdict.
#[async_trait]
pub trait Received: Send + Sync {
    fn body(&self) -> &[u8];

    /// Whether a callback of this service published it instead of a client of the broker. Such a command is refused: a client
    /// that may register timers of one tenant could otherwise issue commands for every tenant.
    fn is_callback(&self) -> bool;

    /// The trace that its sender is in, if the message says so.
    fn trace(&self) -> Option<TraceContext>;

    /// How often the command was delivered, this time included.
    fn deliveries(&self) -> u32;

    /// Tells the broker the verdict. An error means that the broker may not have it, and redelivers the command.
    async fn settle(self: Box<Self>, verdict: Verdict) -> Result<(), BrokerError>;
}

/// The verdict on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The command is acknowledged and never redelivered.
    Done,
    /// The command is redelivered, not sooner than after this time.
    Later { after: Duration },
    /// The command can never work: it is dead-lettered together with the reason, and never redelivered. When the dead letter
    /// cannot be stored, settling fails and the command is redelivered.
    Never { reason: String },
}

/// An event to be published. Its subject follows from the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub tenant: Namespace,
    /// The id for deduplication, the same for every repetition.
    pub id: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why the broker did not do what it was asked. The texts are fit for a timer's `last_error`: they never hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// The broker could not be reached, or did not answer. Trying again may help.
    #[error("the broker is away: {0}")]
    Away(#[source] Cause),
    /// It answered, and does not want it. An operator must act before trying again helps.
    #[error("the broker refuses: {0}")]
    Refused(#[source] Cause),
    /// This message cannot be published at all.
    #[error("the event cannot be published: {0}")]
    Unpublishable(#[source] Cause),
}
