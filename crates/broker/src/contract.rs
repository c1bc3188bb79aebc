use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::{Cause, Namespace};

/// A message broker as far as the consumer needs one. Knows nothing of any particular one.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Waits until there are commands, and gives at most `max` of them, oldest first. It may be empty after a while of quiet.
    ///
    /// Can be canceled at any time: what it has not handed out comes out of the next call, or is given back. What it has
    /// handed out belongs to this process until it is settled. What is dropped without that is delivered again in the end.
    async fn receive(&self, max: usize) -> Result<Vec<Box<dyn Received>>, BrokerError>;

    /// Fetches no more commands, and gives back those that were fetched and not handed out, so that other consumers get them at once.
    /// When this answers `Ok`, everything that was settled before has reached the broker. `receive` begins anew.
    async fn give_back(&self) -> Result<(), BrokerError>;

    /// Publishes an event. `Ok` means that the broker has it for good; any error, that it may or may not have it. Of events with
    /// the same id the broker keeps one, as far as its memory of ids reaches.
    async fn publish(&self, event: Event) -> Result<(), BrokerError>;
}

/// A command that was received and waits for its verdict.
#[async_trait]
pub trait Received: Send + Sync {
    fn body(&self) -> &[u8];

    /// Whether a callback of this service published it, and no client of the broker: a client that may register timers of one tenant
    /// would otherwise command those of all.
    fn is_callback(&self) -> bool;

    /// How often it was delivered, this time included.
    fn deliveries(&self) -> u32;

    /// Tells the broker what became of it. An error means that the broker may not know, and delivers it again.
    async fn settle(self: Box<Self>, verdict: Verdict) -> Result<(), BrokerError>;
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It never comes again.
    Done,
    /// It comes again, not sooner than this.
    Later { after: Duration },
    /// It can never work: it is kept aside together with the reason, and never comes again. When it cannot be kept, that is an
    /// error and it does come again.
    Never { reason: String },
}

/// An event on its way to the broker. Where it goes follows from the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub tenant: Namespace,
    /// The same for every repetition.
    pub id: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why a broker did not do what it was asked. The texts are fit for a timer's `last_error`: they never hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// It could not be reached, or did not answer. Trying again may help.
    #[error("the broker is away: {0}")]
    Away(#[source] Cause),
    /// It answered, and does not want it. An operator must act before trying again helps.
    #[error("the broker refuses: {0}")]
    Refused(#[source] Cause),
    /// This message cannot be published at all.
    #[error("the event cannot be published: {0}")]
    Unpublishable(#[source] Cause),
}
