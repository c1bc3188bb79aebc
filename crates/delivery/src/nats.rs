//! The sender of `nats` callbacks: one message, delivered once the server has taken it or a stream has stored it.

use std::{sync::Arc, time::Duration};

use ::nats::{Connection, Outgoing, PublishError};
use async_trait::async_trait;
use domain::{Callback, CallbackKind, Endpoint, Invalid, Namespace, NatsEndpoint, Subject, Timer};
use tokio::{sync::watch, time::timeout};

use crate::{
    Failure, FailureKind, Outcome, Prepared, Sender,
    answer::Answer,
    call::Call,
    headers::{self, Header},
    payload,
};

/// Refuses subjects that no callback of a namespace may publish to.
pub type SubjectCheck = Arc<dyn Fn(&Namespace, &Subject) -> Result<(), Invalid> + Send + Sync>;

/// How long a call waits for the server right after the start, and then for the check to be ready.
const CONNECTED_WITHIN: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_secs(5);

pub struct NatsSender {
    connection: Connection,
    check: SubjectCheck,
    /// Until this is true the check may let pass what it would refuse later.
    is_check_ready: watch::Receiver<bool>,
}

impl NatsSender {
    /// What `check` refuses is never published, and nothing is before `is_check_ready`.
    pub fn new(connection: Connection, check: SubjectCheck, is_check_ready: watch::Receiver<bool>) -> Self {
        Self { connection, check, is_check_ready }
    }

    async fn publish(&self, endpoint: &NatsEndpoint, call: &Call<'_>) -> Outcome {
        if let Err(failure) = self.check_ready().await {
            return failure.into();
        }
        // The rules may be younger than the timer.
        if let Err(refusal) = (self.check)(&call.timer.definition.namespace, &endpoint.topic) {
            return Failure::new(FailureKind::Subject, refusal.to_string()).into();
        }
        let message = write(endpoint, call);
        let published = if endpoint.jetstream {
            // The same for every attempt: a stream drops what it has already.
            self.connection.publish_to_stream(message, &call.timer.webhook_id()).await.map(drop)
        } else {
            self.connection.publish(message).await
        };
        published.map_err(explain).into()
    }

    async fn check_ready(&self) -> Result<(), Failure> {
        let mut is_ready = self.is_check_ready.clone();
        if *is_ready.borrow() {
            return Ok(());
        }
        if !self.connection.connected_within(CONNECTED_WITHIN).await {
            return Err(explain(PublishError::NotConnected));
        }
        match timeout(READY_WITHIN, is_ready.wait_for(|is_ready| *is_ready)).await {
            Ok(Ok(_)) => Ok(()),
            _ => {
                let reason = "the NATS server has not told yet which subjects are the platform's own: JetStream does not answer";
                Err(Failure::new(FailureKind::Disconnected, reason.to_owned()))
            }
        }
    }
}

#[async_trait]
impl Sender for NatsSender {
    fn kind(&self) -> CallbackKind {
        CallbackKind::Nats
    }

    fn check(&self, namespace: &Namespace, callback: &Callback) -> Result<(), Invalid> {
        let Endpoint::Nats(endpoint) = &callback.endpoint else { return Ok(()) };
        (self.check)(namespace, &endpoint.topic)
    }

    /// All messages share one connection.
    async fn prepare(&self, _: &Timer) -> Prepared {
        Prepared::default()
    }

    async fn send(&self, call: &Call<'_>, _: Prepared) -> Answer {
        match &call.timer.definition.callback.endpoint {
            Endpoint::Nats(endpoint) => self.publish(endpoint, call).await.into(),
            _ => Answer::misdirected(self.kind()),
        }
    }
}

/// The client's own headers, then those of the service. A default of the service gives way to the client's.
fn write(endpoint: &NatsEndpoint, call: &Call<'_>) -> Outgoing {
    let callback = &call.timer.definition.callback;
    let payload = payload::bytes(callback.payload());
    let mut headers: Vec<_> = callback.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let content_type = Header { name: headers::CONTENT_TYPE, value: headers::JSON.into(), is_default: true };
    let key = endpoint.key.as_deref().map(|key| Header { name: headers::TIMER_KEY, value: key.into(), is_default: false });
    let ours = [content_type].into_iter().chain(headers::of(call, &payload)).chain(key);
    for Header { name, value, is_default } in ours {
        if !is_default || !headers.iter().any(|(set, _)| set.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.into_owned()));
        }
    }
    Outgoing { subject: endpoint.topic.as_str().to_owned(), headers, payload }
}

fn explain(error: PublishError) -> Failure {
    let kind = match error {
        PublishError::NotConnected => FailureKind::Disconnected,
        PublishError::Lost => FailureKind::Reset,
        PublishError::TimedOut => FailureKind::Timeout,
        PublishError::Denied { .. } | PublishError::Unconfirmable { .. } => FailureKind::Denied,
        PublishError::NoStream { .. } => FailureKind::NoStream,
        PublishError::TooLarge { .. } => FailureKind::TooLarge,
        PublishError::Refused(_) | PublishError::Unheard => FailureKind::Rejected,
        PublishError::Malformed(_) => FailureKind::Request,
    };
    Failure::new(kind, error.to_string())
}

#[cfg(test)]
mod tests;
