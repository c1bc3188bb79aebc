use std::{sync::Arc, time::Duration};

use domain::{Attempt, AttemptLog, Clock, Endpoint, Span, TenantId, Timer};
use tokio::sync::watch;

use crate::{
    Announcer, Egress, Failure, FailureKind, NamespaceRules, Outcome, SigningSecrets,
    answer::Answer,
    call::Call,
    http::{HttpSender, Lookups, PreparedHttp, SystemNames, roots},
    metrics::{DeliveryMetrics, Shortages},
    nats::{NatsSender, SubjectCheck},
};

/// How long an event holds its permit where no broker is configured.
const NO_BROKER_PAUSE: Duration = Duration::from_secs(5);

/// What the operator decides about callbacks.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub egress: Egress,
    /// Without them calls are not signed.
    pub signing: Option<SigningSecrets>,
    pub namespaces: Arc<NamespaceRules>,
    /// Of which attempts a record is made.
    pub attempt_log: AttemptLog,
    /// How many connections may wait for their next call; as many as usual if it is not given, and never more.
    pub idle_connections_max: Option<usize>,
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

/// What a call goes out by, without having to wait any more.
#[derive(Default)]
pub struct Prepared(Option<PreparedHttp>);

/// An attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub outcome: Outcome,
    /// What is to be remembered of it, if anything.
    pub record: Option<Attempt>,
}

/// Makes the calls. One for the whole process: it holds the connections that are kept alive.
pub struct Deliverer {
    http: HttpSender,
    nats: Option<NatsSender>,
    events: Option<Arc<dyn Announcer>>,
    signing: Option<SigningSecrets>,
    namespaces: Arc<NamespaceRules>,
    attempt_log: AttemptLog,
    clock: Arc<dyn Clock>,
    metrics: DeliveryMetrics,
    shortages: Shortages,
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
        let Config { egress, signing, namespaces, attempt_log, idle_connections_max, version } = config;
        let http = HttpSender::new(egress, &version, clock.clone(), lookups, roots)?.keeping(idle_connections_max);
        let (metrics, shortages) = (DeliveryMetrics::default(), Shortages::default());
        Ok(Self { http, nats: None, events: None, signing, namespaces, attempt_log, clock, metrics, shortages })
    }

    /// The same, for `nats` callbacks too. What `check` refuses is never published, and nothing is before `is_check_ready`.
    #[must_use]
    pub fn with_nats(
        mut self,
        connection: ::nats::Connection,
        check: SubjectCheck,
        is_check_ready: watch::Receiver<bool>,
    ) -> Self {
        self.nats = Some(NatsSender::new(connection, check, is_check_ready));
        self
    }

    /// The same, for events too.
    #[must_use]
    pub fn with_events(mut self, announcer: Arc<dyn Announcer>) -> Self {
        self.events = Some(announcer);
        self
    }

    /// Waits until the call can go out: many new connections at once would be too much for most receivers.
    pub async fn prepare(&self, timer: &Timer) -> Prepared {
        match &timer.definition.callback.endpoint {
            // Why there is none, the attempt finds out again.
            Endpoint::Http(http) => Prepared(self.http.prepare(http, TenantId::of(&timer.definition.namespace)).await.ok()),
            Endpoint::Nats(_) | Endpoint::Event => Prepared(None),
        }
    }

    /// Makes the attempt with this number (1 for the first) and says how it ended. Dropping the future abandons the call:
    /// whether the receiver got it is then unknown. Connections live on the runtime on which this is first polled.
    pub async fn attempt(&self, timer: &Timer, attempt: u32, prepared: Prepared) -> Attempted {
        let signing = self.namespaces.signing(&timer.definition.namespace).or(self.signing.as_ref());
        let call = Call { timer, attempt, at: self.clock.now(), signing, attempt_log: self.attempt_log };
        let started = self.clock.monotonic();
        let callback = &timer.definition.callback;
        let answer = match (&callback.endpoint, &self.nats, &self.events) {
            (Endpoint::Http(http), _, _) => self.http.send(http, &call, prepared.0).await,
            (Endpoint::Nats(nats), Some(sender), _) => sender.send(nats, &call).await.into(),
            (Endpoint::Nats(_), None, _) => not_configured("no NATS server is configured: set NATS_URL").into(),
            (Endpoint::Event, _, Some(events)) => Outcome::from(events.announce(timer, attempt).await).into(),
            (Endpoint::Event, _, None) => {
                // It is tried for ever: thousands of them must not keep the store busy with that.
                tokio::time::sleep(NO_BROKER_PAUSE).await;
                not_configured("no broker is configured: set TIMER_BROKER").into()
            }
        };
        let took = self.clock.monotonic().saturating_sub(started);
        let record = record(&answer, &call, took);
        let outcome = answer.outcome;
        match outcome {
            Outcome::NotAttempted { reason } => self.shortages.note(reason, self.clock.monotonic()),
            _ => self.metrics.record(callback.kind(), &outcome, took),
        }
        tracing::debug!(timer.id = %timer.id(), timer.attempt = attempt, callback.outcome = outcome.label(), "callback attempt ended");
        Attempted { outcome, record }
    }
}

/// The record of an attempt, if it is one that is remembered. What the receiver said comes before what we say of it.
fn record(answer: &Answer, call: &Call<'_>, took: Duration) -> Option<Attempt> {
    let Answer { outcome, status, body } = answer;
    let message = match outcome {
        Outcome::Failed(failure) => failure.message.as_bytes(),
        Outcome::Delivered | Outcome::Rescheduled { .. } => &[],
        // There was no attempt.
        Outcome::NotAttempted { .. } => return None,
    };
    // One that is tried for ever while the broker is away has nothing new to tell.
    let is_event = call.timer.definition.callback.is_event();
    (call.attempt_log.wants(outcome.is_delivered()) && !is_event).then(|| Attempt {
        number: call.attempt,
        started_at: call.at,
        took: Span::from_micros_clamped(i64::try_from(took.as_micros()).unwrap_or(i64::MAX)),
        outcome: outcome.label().to_owned(),
        status: *status,
        detail: Attempt::excerpt(body).or_else(|| Attempt::excerpt(message)),
    })
}

fn not_configured(message: &str) -> Outcome {
    Failure::new(FailureKind::NotConfigured, message).into()
}

#[cfg(test)]
mod tests;
