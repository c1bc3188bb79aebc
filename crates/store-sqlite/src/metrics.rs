//! What an operator sees of this store, all in one place.

use domain::Metric;
use metrics::{counter, gauge, histogram};

const COMMITS: &str = "timer_sqlite_commits_total";
const BATCH_ROWS: &str = "timer_sqlite_batch_rows";
const LOG_PAGES: &str = "timer_sqlite_log_pages";
const CHECKPOINTS: &str = "timer_sqlite_checkpoints_total";

/// The metrics of this crate.
pub const METRICS: &[Metric] = &[
    Metric::counter(COMMITS, "Transactions committed to the SQLite database"),
    Metric::histogram(BATCH_ROWS, "Rows of the requests that one transaction carries"),
    Metric::gauge(LOG_PAGES, "Pages of 4 KiB in the write-ahead log, when last looked at"),
    Metric::counter(CHECKPOINTS, "Checkpoints run beside the writer"),
];

pub fn commit() {
    counter!(COMMITS).increment(1);
}

pub fn batch(rows: usize) {
    histogram!(BATCH_ROWS).record(rows as f64);
}

pub fn log_pages(pages: i64) {
    gauge!(LOG_PAGES).set(pages as f64);
}

pub fn checkpoint() {
    counter!(CHECKPOINTS).increment(1);
}
