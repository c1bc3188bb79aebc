use std::{sync::Arc, time::Duration};

use domain::{
    Attempt, AttemptLog, Backend, Callback, CallbackKind, Clock, Invalid, KindSet, Namespace, ReceivedAnswer, Span, Timer,
    TraceContext, Tracer,
};

use crate::{
    Egress, Failure, FailureKind, NamespaceRules, Outcome, Prepared, Sender, SetupError, SigningSecrets,
    answer::Answer,
    call::Call,
    http::{HttpSender, Lookups, SystemNames, roots},
    metrics::{DeliveryMetrics, Shortages},
    sender::Senders,
    spans::AttemptSpans,
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
    /// Which attempts are recorded.
    pub attempt_log: AttemptLog,
    /// How much of an answer's body is kept with a record; nothing of the answer where it is 0.
    pub answer_bytes_max: usize,
    /// How many connections may wait for their next call; as many as usual if it is not given, and never more.
    pub idle_connections_max: Option<usize>,
    /// The version of this program, for `User-Agent`.
    pub version: String,
    /// What this process is called in records of attempts.
    pub node: Option<String>,
}

/// An attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    pub outcome: Outcome,
    /// What is to be remembered of it, if anything.
    pub record: Option<Attempt>,
    /// The trace that the receiver was told to go on with.
    pub trace: Option<Arc<TraceContext>>,
}

/// Makes the calls. One for the whole process: its senders hold the connection pools.
pub struct Deliverer {
    senders: Senders,
    signing: Option<SigningSecrets>,
    namespaces: Arc<NamespaceRules>,
    attempt_log: AttemptLog,
    answer_bytes_max: usize,
    node: Option<String>,
    clock: Arc<dyn Clock>,
    /// Without one no spans are made.
    tracer: Option<Arc<dyn Tracer>>,
    metrics: DeliveryMetrics,
    shortages: Shortages,
}

impl Deliverer {
    /// Makes a deliverer of `http` callbacks. Reads the certificates of the machine.
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
        let Config { egress, signing, namespaces, attempt_log, answer_bytes_max, idle_connections_max, version, node } = config;
        let http = HttpSender::new(egress, &version, clock.clone(), lookups, roots)?.keeping(idle_connections_max);
        let deliverer = Self {
            senders: Senders::default(),
            signing,
            namespaces,
            attempt_log,
            answer_bytes_max,
            node,
            clock,
            tracer: None,
            metrics: DeliveryMetrics::default(),
            shortages: Shortages::default(),
        };
        Ok(deliverer.with(http))
    }

    /// The same, for the callbacks of this sender too.
    #[must_use]
    pub fn with(mut self, sender: impl Sender + 'static) -> Self {
        self.senders.register(Arc::new(sender));
        self
    }

    /// The same, with spans of its attempts where there is a tracer.
    #[must_use]
    pub fn traced_by(mut self, tracer: Option<Arc<dyn Tracer>>) -> Self {
        self.tracer = tracer;
        self
    }

    /// The kinds of callbacks that can be sent.
    pub fn kinds(&self) -> KindSet {
        self.senders.kinds()
    }

    /// Refuses a callback that its sender would never send: see [`Sender::check`]. Of a kind that has no sender, all pass.
    pub fn check(&self, namespace: &Namespace, callback: &Callback) -> Result<(), Invalid> {
        self.senders.of(callback.endpoint.kind()).map_or(Ok(()), |sender| sender.check(namespace, callback))
    }

    /// Waits until the call can go out: many new connections at once would be too much for most receivers.
    pub async fn prepare(&self, timer: &Timer) -> Prepared {
        match self.senders.of(timer.definition.callback.endpoint.kind()) {
            Some(sender) => sender.prepare(timer).await,
            None => Prepared::default(),
        }
    }

    /// Makes the attempt with this number (1 for the first) and says how it ended. Dropping the future abandons the call:
    /// whether the receiver got it is then unknown. Connections live on the runtime on which this is first polled.
    pub async fn attempt(&self, timer: &Timer, attempt: u32, prepared: Prepared) -> Attempted {
        let signing = self.namespaces.signing(&timer.definition.namespace).or(self.signing.as_ref());
        let (attempt_log, answer_bytes_max) = (self.attempt_log, self.answer_bytes_max);
        let at = self.clock.now();
        let spans = self.tracer.as_deref().map(|tracer| Box::new(AttemptSpans::start(tracer, timer, attempt, at)));
        let trace = match &spans {
            Some(spans) => Some(spans.context()),
            None => timer.definition.options.trace.clone(),
        };
        let call = Call { timer, attempt, at, signing, trace: trace.as_deref(), attempt_log, answer_bytes_max };
        let started = self.clock.monotonic();
        let kind = timer.definition.callback.endpoint.kind();
        let answer = match self.senders.of(kind) {
            Some(sender) => sender.send(&call, prepared).await,
            None => not_configured(kind).await,
        };
        let took = self.clock.monotonic().saturating_sub(started);
        let record = record(&answer, &call, took).map(|record| Attempt { node: self.node.clone(), ..record });
        if let Some(spans) = spans {
            spans.end(&answer);
        }
        let outcome = answer.outcome;
        match outcome {
            Outcome::NotAttempted { reason } => self.shortages.note(reason, self.clock.monotonic()),
            _ => self.metrics.record(kind.as_str(), &outcome, took),
        }
        tracing::debug!(timer.id = %timer.id(), timer.attempt = attempt, callback.outcome = outcome.label(), "callback attempt ended");
        Attempted { outcome, record, trace }
    }
}

/// The record of an attempt, if it is one that is remembered. What the receiver said comes before what we say of it.
fn record(answer: &Answer, call: &Call<'_>, took: Duration) -> Option<Attempt> {
    let Answer { outcome, status, headers, body } = answer;
    let kept = &body[..body.len().min(call.answer_bytes_max)];
    let is_kept = call.answer_bytes_max > 0 && status.is_some();
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
        node: None,
        answer: is_kept.then(|| ReceivedAnswer::new(headers.clone(), kept)),
    })
}

/// The answer to a call of a kind that has no sender.
async fn not_configured(kind: CallbackKind) -> Answer {
    if kind == CallbackKind::Event {
        // It is tried for ever: thousands of them must not keep the store busy with that.
        tokio::time::sleep(NO_BROKER_PAUSE).await;
    }
    let message = match kind.backend() {
        Some(Backend { name, setting }) => format!("no {name} is configured: set {setting}"),
        None => format!("callbacks of type {kind} are not configured"),
    };
    Outcome::from(Failure::new(FailureKind::NotConfigured, message)).into()
}

#[cfg(test)]
mod tests;
