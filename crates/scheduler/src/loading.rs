use std::sync::Arc;

use domain::{Clock, Span};
use store::{DueStore, ShardCursor, StoreResult};

use crate::shared_window::SharedWindow;

/// How many entries one load reads, over all shards.
const PAGE_ENTRIES: usize = 16_384;
const PAGE_ENTRIES_PER_SHARD_MIN: usize = 256;
/// How many shards one load reads. With all 4,096 shards of a large store, the smallest pages would be more than a window holds, and
/// no load would ever begin.
const SHARDS_MAX: usize = 1_024;

/// Reads ahead: keeps the window filled for the near term.
pub struct Loader {
    store: Arc<dyn DueStore>,
    clock: Arc<dyn Clock>,
    window: Arc<SharedWindow>,
    look_ahead: Span,
}

impl Loader {
    pub fn new(store: &Arc<dyn DueStore>, clock: &Arc<dyn Clock>, window: &Arc<SharedWindow>, look_ahead: Span) -> Self {
        Self { store: Arc::clone(store), clock: Arc::clone(clock), window: Arc::clone(window), look_ahead }
    }

    /// Reads on where the window ends, if it reaches less than half the way it should. Returns whether there is more
    /// to read at once.
    pub async fn load_once(&self) -> StoreResult<bool> {
        let now = self.clock.now();
        let half_way = Span::from_micros_clamped(self.look_ahead.as_micros() / 2);
        let until = now.saturating_add(self.look_ahead);
        let begun = self.window.with(|window| {
            let mut from = window.begin_load(now.saturating_add(half_way), until);
            let later = leave_to_later_loads(&mut from);
            window.abandon_load(&later);
            let limit = (PAGE_ENTRIES / from.len().max(1)).max(PAGE_ENTRIES_PER_SHARD_MIN);
            // A window without capacity for a page would only push out what it has just read.
            if from.is_empty() || window.capacity_left() < limit * from.len() {
                window.abandon_load(&from);
                return None;
            }
            Some((from, limit, !later.is_empty()))
        });
        let Some((from, limit, is_cut)) = begun else { return Ok(false) };
        match self.store.due(&from, until, limit).await {
            Ok(entries) => {
                let (new, more) = self.window.with(|window| window.end_load(&from, &entries, until, limit));
                metrics::counter!("timer_loaded_total").increment(new as u64);
                if new > 0 {
                    self.window.wake();
                }
                Ok(more || is_cut)
            }
            Err(error) => {
                self.window.with(|window| window.abandon_load(&from));
                Err(error)
            }
        }
    }
}

/// Takes out the shards beyond what one load reads: those that have been read furthest.
fn leave_to_later_loads(from: &mut Vec<ShardCursor>) -> Vec<ShardCursor> {
    if from.len() <= SHARDS_MAX {
        return Vec::new();
    }
    from.sort_by_key(|cursor| cursor.after);
    from.split_off(SHARDS_MAX)
}
