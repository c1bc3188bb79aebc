//! How late calls were: percentiles over a test.

/// Latenesses in microseconds, shown in milliseconds.
pub struct Lateness(Vec<i64>);

impl Lateness {
    pub fn of(micros: impl IntoIterator<Item = i64>) -> Self {
        let mut sorted: Vec<i64> = micros.into_iter().collect();
        assert!(!sorted.is_empty(), "nothing was measured");
        sorted.sort_unstable();
        Self(sorted)
    }

    /// In milliseconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        let at = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[at] as f64 / 1000.0
    }

    pub fn max(&self) -> f64 {
        self.percentile(100)
    }
}

impl std::fmt::Display for Lateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99] = [50, 99].map(|percent| self.percentile(percent));
        write!(f, "p50 {p50:.1} ms, p99 {p99:.1} ms, max {:.1} ms over {}", self.max(), self.0.len())
    }
}
