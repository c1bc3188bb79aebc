use domain::Timestamp;
use store::{DueEntry, ShardCursor, StoreResult};

use crate::Scheduler;

/// How many entries one page of the sweep reads for each shard, and how many pages one sweep reads.
const PAGE_ENTRIES: usize = 4096;
const PAGES_MAX: usize = 16;

/// Where a sweep that met a long backlog goes on.
#[derive(Debug, Default)]
pub struct SweepPosition(Vec<ShardCursor>);

impl Scheduler {
    /// Asks the store for what is overdue and still pending, and takes in what the window does not know. Returns how
    /// many that were. Nearly free when nothing was missed.
    pub async fn sweep_once(&self, position: &mut SweepPosition) -> StoreResult<usize> {
        let now = self.now();
        let mut from = std::mem::take(&mut position.0);
        if from.is_empty() {
            from = self.tenures().iter().map(|tenure| ShardCursor { shard: tenure.shard, after: None }).collect();
        }
        let mut repaired = 0;
        for _ in 0..PAGES_MAX {
            if from.is_empty() {
                break;
            }
            let entries = self.store.due(&from, now, PAGE_ENTRIES).await?;
            repaired += self.take_in(&entries);
            from = self.full_pages(&from, &entries);
        }
        position.0 = from;
        if repaired > 0 {
            metrics::counter!("timer_sweep_repaired_total").increment(repaired as u64);
            self.wake();
        }
        Ok(repaired)
    }

    fn take_in(&self, entries: &[DueEntry]) -> usize {
        let mut window = self.window();
        entries.iter().filter(|entry| window.repair(**entry)).count()
    }

    /// The shards whose page was full, each with its last entry.
    fn full_pages(&self, from: &[ShardCursor], entries: &[DueEntry]) -> Vec<ShardCursor> {
        let shards = self.store.shards();
        let go_on = |cursor: &ShardCursor| {
            let page = || entries.iter().filter(|entry| entry.id.shard(shards) == cursor.shard);
            let last: Option<(Timestamp, _)> = page().map(|entry| (entry.at, entry.id)).max();
            (page().count() >= PAGE_ENTRIES).then_some(ShardCursor { shard: cursor.shard, after: last })
        };
        from.iter().filter_map(go_on).collect()
    }
}
