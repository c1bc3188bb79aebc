use domain::{Metric, Next, Span};
use metrics::{Counter, Histogram, counter, histogram};
use store::Settlement;

const LATENESS: &str = "timer_lateness_seconds";
const FIRED: &str = "timer_fired_total";
const COMPLETED: &str = "timer_completed_total";
const FAILED: &str = "timer_failed_total";
const EXPIRED: &str = "timer_expired_total";
const RETRIES: &str = "timer_retries_total";
const FENCED: &str = "timer_fenced_total";
const SET_ASIDE: &str = "timer_settlements_set_aside_total";

/// What the pipeline counts. Looked up once: a timer is counted three times in its life.
pub struct PipelineMetrics {
    lateness: Histogram,
    fired: Counter,
    completed: Counter,
    failed: Counter,
    expired: Counter,
    retries: Counter,
    fenced: Counter,
    set_aside: Counter,
}

impl Default for PipelineMetrics {
    fn default() -> Self {
        Self {
            lateness: histogram!(LATENESS),
            fired: counter!(FIRED),
            completed: counter!(COMPLETED),
            failed: counter!(FAILED),
            expired: counter!(EXPIRED),
            retries: counter!(RETRIES),
            fenced: counter!(FENCED),
            set_aside: counter!(SET_ASIDE),
        }
    }
}

impl PipelineMetrics {
    pub fn fired(&self, late: Span) {
        self.lateness.record(late.as_duration().as_secs_f64());
        self.fired.increment(1);
    }

    pub fn fenced(&self, results: usize) {
        self.fenced.increment(results as u64);
    }

    pub fn set_aside(&self) {
        self.set_aside.increment(1);
    }

    pub fn retries(&self, attempts: usize) {
        self.retries.increment(attempts as u64);
    }

    /// Counts what is on record now, by how it ended. Retries are counted where it is known whether there was an attempt.
    pub fn settled(&self, batch: &[Settlement], counted: &[bool]) {
        let (mut completed, mut failed, mut expired) = (0, 0, 0);
        for (settlement, _) in batch.iter().zip(counted).filter(|(_, counted)| **counted) {
            match settlement.next {
                Next::Completed { .. } => completed += 1,
                Next::Failed { .. } | Next::GivenUp { .. } => failed += 1,
                Next::Expired { .. } => expired += 1,
                Next::Pending { .. } | Next::Again { .. } => {}
            }
        }
        self.completed.increment(completed);
        self.failed.increment(failed);
        self.expired.increment(expired);
    }
}

/// The metrics of the pipeline.
pub const METRICS: &[Metric] = &[
    Metric::histogram(LATENESS, "From the time a timer was due to the start of its call"),
    Metric::counter(FIRED, "Calls made, counted when they end"),
    Metric::counter(COMPLETED, "Timers completed"),
    Metric::counter(FAILED, "Timers that failed for good"),
    Metric::counter(EXPIRED, "Timers that expired before a delivery went well"),
    Metric::counter(RETRIES, "Failed attempts that will be repeated"),
    Metric::counter(FENCED, "Results that did not count, because the timer was in other hands"),
    Metric::counter(SET_ASIDE, "Results that cannot be recorded because stored data is damaged"),
];
