//! What this crate counts.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ::metrics::{Counter, Histogram};
use domain::{CallbackKind, Metric};

use crate::{Outcome, Shortage, outcome::OUTCOMES};

const DURATION: &str = "timer_callback_duration_seconds";
const TOTAL: &str = "timer_callbacks_total";
const NOT_ATTEMPTED: &str = "timer_not_attempted_total";

/// How often a shortage is logged at most.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

const KINDS: &[&str] = &CallbackKind::NAMES;
const SHORTAGES: &[&str] = &[
    Shortage::Descriptors.label(),
    Shortage::Ports.label(),
    Shortage::Memory.label(),
    Shortage::Threads.label(),
    Shortage::Lookups.label(),
];

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::histogram(DURATION, "How long callback attempts took, by kind of callback and by outcome")
        .by(&[("kind", KINDS), ("outcome", &["delivered"])]),
    Metric::counter(TOTAL, "Callback attempts that ended, by kind of callback and by outcome")
        .by(&[("kind", KINDS), ("outcome", OUTCOMES)]),
    Metric::counter(
        NOT_ATTEMPTED,
        "Calls that this machine could not make and that wait for another try, by what it is short of",
    )
    .by(&[("reason", SHORTAGES)]),
];

/// What could not be sent. There may be thousands in a second, so that only some of it is logged.
#[derive(Default)]
pub(crate) struct Shortages(Mutex<Unlogged>);

#[derive(Default)]
struct Unlogged {
    calls: u64,
    last_warning: Option<Duration>,
}

impl Shortages {
    /// Counts a call that was not made. `monotonic` is the monotonic clock.
    pub(crate) fn note(&self, reason: Shortage, monotonic: Duration) {
        metrics::counter!(NOT_ATTEMPTED, "reason" => reason.label()).increment(1);
        if let Some(calls) = self.0.lock().unwrap_or_else(PoisonError::into_inner).count(monotonic) {
            let reason = reason.label();
            tracing::warn!(
                reason,
                calls,
                "calls could not be made: this machine is short of {reason}; their timers stay pending"
            );
        }
    }
}

impl Unlogged {
    /// How many calls a warning is to speak of, if one is due.
    fn count(&mut self, monotonic: Duration) -> Option<u64> {
        self.calls += 1;
        if self.last_warning.is_some_and(|last| monotonic.saturating_sub(last) < WARNING_INTERVAL) {
            return None;
        }
        self.last_warning = Some(monotonic);
        Some(std::mem::take(&mut self.calls))
    }
}

/// What is counted of attempts. Each series is looked up once: there are few, and each is used for ever.
#[derive(Default)]
pub(crate) struct DeliveryMetrics(Mutex<Vec<Series>>);

struct Series {
    kind: &'static str,
    outcome: &'static str,
    duration: Histogram,
    total: Counter,
}

impl DeliveryMetrics {
    pub(crate) fn record(&self, kind: &'static str, outcome: &Outcome, took: Duration) {
        let outcome = outcome.label();
        // Series are only ever added, each as a whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|series| series.kind == kind && series.outcome == outcome);
        let at = known.unwrap_or_else(|| {
            let labels = [("kind", kind), ("outcome", outcome)];
            let (duration, total) = (metrics::histogram!(DURATION, &labels), metrics::counter!(TOTAL, &labels));
            all.push(Series { kind, outcome, duration, total });
            all.len() - 1
        });
        all[at].duration.record(took);
        all[at].total.increment(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::metrics::{Gauge, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder};

    use super::*;
    use crate::{Failure, FailureKind};

    /// Writes down which series were asked for.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Notes {
        fn take(&self, key: &Key) {
            let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            self.0.lock().unwrap().push(format!("{}{{{}}}", key.name(), labels.join(",")));
        }
    }

    impl Recorder for Notes {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.take(key);
            Counter::noop()
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }
        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.take(key);
            Histogram::noop()
        }
    }

    #[test]
    fn a_shortage_is_logged_now_and_then_with_all_it_has_held_up() {
        let mut unlogged = Unlogged::default();
        let table = [(5, Some(1)), (6, None), (14, None), (15, Some(3)), (24, None), (60, Some(2))];
        for (seconds, logged) in table {
            assert_eq!(unlogged.count(Duration::from_secs(seconds)), logged, "at second {seconds}");
        }
    }

    #[test]
    fn every_outcome_is_shown_from_the_start() {
        use FailureKind as Kind;
        let kinds = [
            [Kind::Status(301), Kind::Status(404), Kind::Status(500), Kind::Status(600), Kind::Timeout, Kind::Refused].as_slice(),
            &[Kind::Unreachable, Kind::Reset, Kind::Tls, Kind::Dns, Kind::Egress, Kind::Subject, Kind::Answer, Kind::TooLarge],
            &[Kind::Request, Kind::Disconnected, Kind::Denied, Kind::NoStream, Kind::Rejected, Kind::Broker, Kind::NotConfigured],
        ];
        let failed = kinds.concat().into_iter().map(|kind| Outcome::from(Failure::new(kind, "")).label());
        let labels: Vec<_> = ["delivered", "rescheduled"].into_iter().chain(failed).collect();
        assert_eq!(labels, OUTCOMES);
    }

    #[test]
    fn an_attempt_is_counted_and_timed_by_kind_and_outcome() {
        let notes = Arc::new(Notes::default());
        with_local_recorder(&notes, || {
            let metrics = DeliveryMetrics::default();
            metrics.record("http", &Outcome::Delivered, Duration::from_millis(3));
            metrics.record("http", &Outcome::Delivered, Duration::from_millis(4));
            metrics.record("nats", &Failure::new(FailureKind::Status(503), "").into(), Duration::ZERO);
        });
        let expected = [
            "timer_callback_duration_seconds{kind=http,outcome=delivered}",
            "timer_callbacks_total{kind=http,outcome=delivered}",
            "timer_callback_duration_seconds{kind=nats,outcome=status_5xx}",
            "timer_callbacks_total{kind=nats,outcome=status_5xx}",
        ];
        assert_eq!(*notes.0.lock().unwrap(), expected);
    }
}
