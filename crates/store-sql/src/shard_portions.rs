//! Counting shard by shard, as far as a budget goes.

use std::time::Duration;

use tokio::time::Instant;

/// Divides the shards into portions that are counted one after the other while the budget lasts. Shards are parts of all timers by
/// chance, so what some of them have tells what all have. Each portion is as large as all before it, and is begun only if it
/// should end in time.
#[derive(Debug)]
pub struct ShardPortions {
    shards: u16,
    counted: u16,
    started: Instant,
    budget: Duration,
}

impl ShardPortions {
    pub fn of(shards: u16, budget: Duration) -> Self {
        Self { shards, counted: 0, started: Instant::now(), budget }
    }

    /// The shards that are counted next; `None` when all are, or when the budget is used up.
    pub fn take(&mut self) -> Option<Vec<i16>> {
        let more = self.counted.max(1).min(self.shards - self.counted);
        let is_late = self.counted > 0 && self.expected(more) > self.budget;
        if more == 0 || is_late {
            return None;
        }
        let first = self.counted;
        self.counted += more;
        Some((first..self.counted).map(u16::cast_signed).collect())
    }

    /// When a portion with `more` shards should have ended, if each takes as long as those before.
    fn expected(&self, more: u16) -> Duration {
        let spent = self.started.elapsed();
        spent + spent * u32::from(more) / u32::from(self.counted.max(1))
    }

    pub const fn is_partly(&self) -> bool {
        self.counted < self.shards
    }

    /// What all shards should have, where those that were counted have `counted`.
    pub fn of_all(&self, counted: u64) -> u64 {
        if self.is_partly() { counted * u64::from(self.shards) / u64::from(self.counted.max(1)) } else { counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn portions_grow_while_the_budget_lasts() {
        let mut portions = ShardPortions::of(8, Duration::from_millis(200));
        let mut sizes = Vec::new();
        while let Some(shards) = portions.take() {
            sizes.push(shards.len());
            tokio::time::advance(Duration::from_millis(10 * shards.len() as u64)).await;
        }
        assert_eq!((sizes, portions.is_partly(), portions.of_all(10)), (vec![1, 1, 2, 4], false, 10));

        let mut portions = ShardPortions::of(8, Duration::from_millis(200));
        let mut sizes = Vec::new();
        while let Some(shards) = portions.take() {
            sizes.push(shards.len());
            tokio::time::advance(Duration::from_millis(50 * shards.len() as u64)).await;
        }
        // Four took 200 ms: four more would end at 400 ms.
        assert_eq!((sizes, portions.is_partly(), portions.of_all(10)), (vec![1, 1, 2], true, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn one_shard_is_counted_whatever_the_budget() {
        let mut portions = ShardPortions::of(64, Duration::ZERO);
        assert_eq!(portions.take(), Some(vec![0]));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(portions.take(), None);
        assert_eq!(portions.of_all(1), 64);
    }
}
