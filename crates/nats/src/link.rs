use std::sync::{Arc, atomic::Ordering};

use async_nats::{Client, connection::State};

use crate::{
    PublishError,
    events::Events,
    inbox::{Inbox, Need},
};

/// The client, and the known state of its connection.
pub(crate) struct Link {
    pub name: &'static str,
    pub client: Client,
    pub events: Arc<Events>,
    pub inbox: Arc<Inbox>,
}

impl Link {
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The number of the connection. It rises with every new one, before anything is sent over it.
    pub fn number(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::SeqCst)
    }

    /// Whether the server is known to be away: no connection is open, and no server could be reached since.
    pub fn is_away(&self) -> bool {
        !self.is_up() && self.events.is_unreachable()
    }

    /// Waits until it is known whether there is a connection.
    pub async fn found(&self) -> bool {
        let mut changes = self.events.changes();
        loop {
            changes.mark_unchanged();
            if self.is_up() || self.is_away() || changes.changed().await.is_err() {
                return self.is_up();
            }
        }
    }

    /// Completes when nothing that was sent over the connection with this number can be confirmed any more, or when `verdict`
    /// returns an error.
    pub async fn hopeless(&self, number: u64, need: Need, verdict: impl Fn() -> Option<PublishError>) -> PublishError {
        let mut changes = self.events.changes();
        loop {
            changes.mark_unchanged();
            if let Some(error) = verdict() {
                return error;
            }
            if let Some(refusal) = self.inbox.refusal(need) {
                return refusal.into();
            }
            if self.number() != number || !self.is_up() || changes.changed().await.is_err() {
                return PublishError::Lost;
            }
        }
    }
}
