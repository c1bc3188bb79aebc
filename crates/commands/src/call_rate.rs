//! Whether calls are made so often that other work gives way to them.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// How long calls are counted before that is said of them.
const WINDOW: Duration = Duration::from_millis(200);

/// How many calls this node has made.
pub type CallCount = Arc<dyn Fn() -> u64 + Send + Sync>;

pub struct CallRate {
    count: CallCount,
    per_second: f64,
    /// How many there were when the window began.
    before: u64,
    since: Instant,
    is_high: bool,
}

impl CallRate {
    /// Makes a rate that is high from `per_second` calls a second on.
    pub fn from(per_second: f64, count: CallCount) -> Self {
        Self { before: count(), count, per_second, since: Instant::now(), is_high: false }
    }

    /// Whether the rate was high in the last complete window.
    pub fn is_high(&mut self) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed >= WINDOW {
            let calls = (self.count)();
            let made = calls.saturating_sub(std::mem::replace(&mut self.before, calls));
            self.is_high = made as f64 >= self.per_second * elapsed.as_secs_f64();
            self.since += elapsed;
        }
        self.is_high
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rare_calls_are_not_given_way_to() {
        let calls = Arc::new(AtomicU64::new(7));
        let count = Arc::clone(&calls);
        let mut rate = CallRate::from(50.0, Arc::new(move || count.load(Ordering::Relaxed)));
        let steps = [
            (WINDOW / 2, 1_000, false, "the window is not over"),
            (WINDOW / 2, 0, true, "1,000 calls within it"),
            (WINDOW / 2, 0, true, "as in the window before"),
            (WINDOW / 2, 0, false, "none since"),
            (WINDOW, 9, false, "45 a second"),
            (WINDOW, 10, true, "50 a second"),
            (WINDOW * 10, 10, false, "5 a second"),
        ];
        for (elapsed, made, is_high, why) in steps {
            tokio::time::advance(elapsed).await;
            calls.fetch_add(made, Ordering::Relaxed);
            assert_eq!(rate.is_high(), is_high, "{why}");
        }
    }
}
