//! NATS JetStream as the broker. No module outside this folder knows NATS.
//!
//! ```text
//!   timer.commands.>   ──▶ stream TIMER_COMMANDS ──▶ consumer timer ──pull──▶ commands
//!   timer.commands.dead ◀─────────────────────────────────────────── those that can never work
//!   timer.events.due.<tenant> ──▶ stream TIMER_EVENTS          ◀──── events
//! ```
//!
//! Streams and consumer are created when they are missing, whenever that is noticed. The server may be away at any time, also
//! at the start. A stream or consumer that the operator has made with other settings is used as it is.

mod dead_letters;
mod jetstream_api;
mod learning;
mod listening;
mod pull;
mod readable;
mod received;
mod search;
mod settings;
mod setup;

use std::time::Duration;

use ::nats::{Connection, Outgoing, PublishError};
use async_trait::async_trait;
use domain::Cause;
use tokio::sync::Mutex;

use crate::{Broker, BrokerError, Event, PlatformSubjects, Received, messages::is_token};
use pull::Pull;
use received::NatsReceived;
use search::Search;
pub(crate) use settings::{COMMANDS_SUBJECTS, EVENTS_SUBJECTS};
use setup::Setup;

pub use learning::learn_platform_subjects;

/// A connection that was just started or just lost is usually back within this time, or stays away for long.
const CONNECTED_WITHIN: Duration = Duration::from_secs(1);

/// A NATS server, or a cluster of them, as the broker.
pub struct NatsBroker {
    connection: Connection,
    setup: Setup,
    fetching: Mutex<Fetching>,
}

#[derive(Default)]
struct Fetching {
    /// `None` until the first receive, and again after an error.
    pull: Option<Pull>,
    search: Search,
}

impl NatsBroker {
    /// Creates the broker without any network access. The subjects that the streams listen on are recorded in `platform`.
    pub fn new(connection: Connection, platform: PlatformSubjects) -> Self {
        Self { connection, setup: Setup::new(platform), fetching: Mutex::default() }
    }

    async fn begin(&self, search: &mut Search) -> Result<Pull, BrokerError> {
        if !self.connection.connected_within(CONNECTED_WITHIN).await {
            return Err(not_connected(&self.connection));
        }
        let client = self.connection.client().await;
        let consumer = self.setup.everything(&client).await?;
        search.run(&self.connection, &jetstream_api::context(&client)).await;
        Pull::begin(client, &consumer).await
    }

    async fn store(&self, message: Outgoing, id: &str) -> Result<(), PublishError> {
        self.connection.publish_to_stream(message, id).await.map(drop)
    }
}

#[async_trait]
impl Broker for NatsBroker {
    async fn receive(&self, max: usize) -> Result<Vec<Box<dyn Received>>, BrokerError> {
        let Fetching { pull, search } = &mut *self.fetching.lock().await;
        let current = match pull {
            Some(pull) => pull,
            None => pull.insert(self.begin(search).await?),
        };
        let messages = current.next(max).await.inspect_err(|_| {
            *pull = None;
            search.suspect();
        })?;
        let received = |message| Some(Box::new(NatsReceived::new(&self.connection, message)?) as Box<dyn Received>);
        Ok(messages.into_iter().filter_map(received).collect())
    }

    async fn give_back(&self) -> Result<(), BrokerError> {
        let Some(pull) = self.fetching.lock().await.pull.take() else { return Ok(()) };
        if !self.connection.is_connected() {
            return Err(not_connected(&self.connection));
        }
        pull.end().await
    }

    async fn publish(&self, event: Event) -> Result<(), BrokerError> {
        if !is_token(event.tenant.as_str()) {
            let rule =
                "its namespace cannot be part of a NATS subject, which is printable ASCII without blanks and without . * >";
            return Err(BrokerError::Unpublishable(rule.into()));
        }
        let subject = format!("{}.{}", settings::DUE_SUBJECT, event.tenant);
        let message = Outgoing { subject, headers: event.headers, payload: event.body };
        match self.store(message.clone(), &event.id).await {
            Err(PublishError::NoStream { .. }) => {
                self.setup.events(&self.connection.client().await).await?;
                self.store(message, &event.id).await
            }
            outcome => outcome,
        }
        .map_err(of_publishing)
    }
}

fn not_connected(connection: &Connection) -> BrokerError {
    BrokerError::Away(format!("not connected to NATS at {}", connection.place()).into())
}

fn of_publishing(error: PublishError) -> BrokerError {
    match error {
        PublishError::NotConnected | PublishError::Lost | PublishError::TimedOut | PublishError::Unheard => {
            BrokerError::Away(Cause::of(error))
        }
        PublishError::Denied { .. }
        | PublishError::NoStream { .. }
        | PublishError::TooLarge { .. }
        | PublishError::Refused(_)
        | PublishError::Unconfirmable { .. } => BrokerError::Refused(Cause::of(error)),
        PublishError::Malformed(_) => BrokerError::Unpublishable(Cause::of(error)),
    }
}
