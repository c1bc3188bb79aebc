use std::{sync::Arc, time::Duration};

use domain::{Callback, Clock, Timer};

use crate::{
    Announcer, Egress, Failure, FailureKind, Outcome, SigningSecrets,
    call::Call,
    http::{HttpSender, Lookups, SystemNames, roots},
    metrics,
    nats::NatsSender,
};

/// How long an event holds its place when there is nobody to publish it.
const NO_BROKER_PAUSE: Duration = Duration::from_secs(5);

/// What the operator decides about callbacks.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub egress: Egress,
    /// Without them calls are not signed.
    pub signing: Option<SigningSecrets>,
    /// Of this program, for `User-Agent`.
    pub version: String,
}

/// Why no call can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the version cannot be part of a User-Agent header")]
    Version,
}

/// Makes the calls. One for the whole process: it holds the connections that are kept alive.
pub struct Deliverer {
    http: HttpSender,
    nats: Option<NatsSender>,
    events: Option<Arc<dyn Announcer>>,
    signing: Option<SigningSecrets>,
    clock: Arc<dyn Clock>,
}

impl Deliverer {
    /// For `http` callbacks. Reads the certificates of the machine.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        Self::with_outside(config, clock, Lookups::new(SystemNames), roots::of_this_machine())
    }

    /// The same, with the parts of the outside world that tests replace.
    pub(crate) fn with_outside(
        config: Config,
        clock: Arc<dyn Clock>,
        lookups: Lookups,
        roots: rustls::RootCertStore,
    ) -> Result<Self, SetupError> {
        let signing = config.signing.clone();
        let http = HttpSender::new(config, clock.clone(), lookups, roots)?;
        Ok(Self { http, nats: None, events: None, signing, clock })
    }

    /// The same, for `nats` callbacks too.
    #[must_use]
    pub fn with_nats(mut self, connection: ::nats::Connection) -> Self {
        self.nats = Some(NatsSender::new(connection, self.signing.clone()));
        self
    }

    /// The same, for events too.
    #[must_use]
    pub fn with_events(mut self, announcer: Arc<dyn Announcer>) -> Self {
        self.events = Some(announcer);
        self
    }

    /// Makes the attempt with this number (1 for the first) and says how it ended. Dropping the future abandons the call:
    /// whether the receiver got it is then unknown. Connections live on the runtime on which this is first polled.
    pub async fn attempt(&self, timer: &Timer, attempt: u32) -> Outcome {
        let call = Call { timer, attempt, at: self.clock.now() };
        let started = self.clock.steady();
        let callback = &timer.definition.callback;
        let outcome = match (callback, &self.nats, &self.events) {
            (Callback::Http(http), _, _) => self.http.send(http, &call).await,
            (Callback::Nats(nats), Some(sender), _) => sender.send(nats, &call).await,
            (Callback::Nats(_), None, _) => not_configured("no NATS server is configured: set NATS_URL"),
            (Callback::Event, _, Some(events)) => events.announce(timer, attempt).await.into(),
            (Callback::Event, _, None) => {
                // It is tried for ever: thousands of them must not keep the store busy with that.
                tokio::time::sleep(NO_BROKER_PAUSE).await;
                not_configured("no broker is configured: set TIMER_BROKER")
            }
        };
        metrics::record(callback.kind(), &outcome, self.clock.steady().saturating_sub(started));
        tracing::debug!(timer.id = %timer.id(), timer.attempt = attempt, callback.outcome = outcome.label(), "callback attempt ended");
        outcome
    }
}

fn not_configured(message: &str) -> Outcome {
    Failure::new(FailureKind::NotConfigured, message).into()
}

#[cfg(test)]
mod tests;
