use domain::Span;
use store::StoreResult;

use crate::Scheduler;

/// How many entries one load reads, over all shards.
const PAGE_ENTRIES: usize = 16_384;
const PAGE_ENTRIES_PER_SHARD_MIN: usize = 256;

impl Scheduler {
    /// Reads on where the window ends, if it reaches less than half the way it should. Returns whether there is more
    /// to read at once.
    pub async fn load_once(&self) -> StoreResult<bool> {
        let now = self.now();
        let half_way = Span::from_micros_clamped(self.config.look_ahead.as_micros() / 2);
        let until = now.saturating_add(self.config.look_ahead);
        let (from, limit) = {
            let mut window = self.window();
            let from = window.begin_load(now.saturating_add(half_way), until);
            let limit = (PAGE_ENTRIES / from.len().max(1)).max(PAGE_ENTRIES_PER_SHARD_MIN);
            // A window without room for a page would only push out what it has just read.
            if from.is_empty() || window.room() < limit * from.len() {
                window.abandon_load(&from);
                return Ok(false);
            }
            (from, limit)
        };
        match self.store.due(&from, until, limit).await {
            Ok(entries) => {
                let (new, more) = self.window().end_load(&from, &entries, until, limit);
                metrics::counter!("timer_loaded_total").increment(new as u64);
                if new > 0 {
                    self.wake();
                }
                Ok(more)
            }
            Err(error) => {
                self.window().abandon_load(&from);
                Err(error)
            }
        }
    }
}
