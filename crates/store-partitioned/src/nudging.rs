//! Telling other processes of timers that became due soon: rows that every process reads a few times a second.

use std::{collections::HashSet, sync::atomic::Ordering, time::Duration};

use domain::{Destination, Span, Timestamp};
use serde::{Deserialize, Serialize};
use store::{DueEntry, StoreError, StoreResult};

use crate::{
    Change, Columns, Condition, Consistency, Outcome, PartitionedStore, Positions, Range, Write,
    json::{from_json, to_json},
    layout,
    nudge_inbox::NudgeInbox,
};

/// How often a process looks for nudges.
const INTERVAL: Duration = Duration::from_millis(50);
/// A nudge is removed once it is so old. Before that, clocks may differ by half of it.
const KEPT: Span = Span::from_secs(10);
/// How many nudges are read or removed at once.
const PAGE: usize = 1_000;
/// How many timers one row tells of.
const ENTRIES_MAX: usize = 2_000;

#[derive(Serialize, Deserialize)]
struct StoredNudge {
    process: u64,
    /// Time, id and destination.
    entries: Vec<(i64, u128, u64)>,
}

impl PartitionedStore {
    pub(crate) async fn send_nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        let now = self.now();
        let told = |entry: &DueEntry| (entry.at.as_micros(), entry.id.as_uuid().as_u128(), entry.destination.0);
        let rows = entries.chunks(ENTRIES_MAX).map(|entries| {
            let nudge = StoredNudge { process: self.process(), entries: entries.iter().map(told).collect() };
            let key = [&layout::ordered(now.as_micros())[..], &self.version().0.to_be_bytes()].concat();
            self.put(key, Condition::Any, to_json(&nudge))
        });
        let rows: Vec<Write> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        let outcomes = self.database.write(&layout::nudges(), rows).await?;
        if let Some(error) = outcomes.into_iter().find_map(failure) {
            return Err(error);
        }
        self.remove_old_nudges(now).await
    }

    async fn remove_old_nudges(&self, now: Timestamp) -> StoreResult<()> {
        let removed_at = self.nudges_removed_at.load(Ordering::Relaxed);
        if now.as_micros() < removed_at.saturating_add(KEPT.as_micros()) {
            return Ok(());
        }
        self.nudges_removed_at.store(now.as_micros(), Ordering::Relaxed);
        // Only the first time from the beginning: databases that keep marks of what was removed would read them all again.
        let from = match removed_at {
            i64::MIN => Vec::new(),
            removed_at => layout::ordered(removed_at.saturating_sub(6 * KEPT.as_micros())).to_vec(),
        };
        let end = layout::ordered(now.saturating_sub(KEPT).as_micros()).to_vec();
        let range = Range { from, to: Some(end), ..Range::all(PAGE) };
        let old = self.database.range(&layout::nudges(), &range, Columns::NONE, Consistency::Eventual).await?;
        let removal =
            |key: Vec<u8>| Write { key, condition: Condition::Any, change: Change::Delete, before: Positions::default() };
        if !old.is_empty() {
            self.database.write(&layout::nudges(), old.into_iter().map(|row| removal(row.key)).collect()).await?;
        }
        Ok(())
    }

    pub(crate) async fn await_nudge(&self) -> StoreResult<Vec<DueEntry>> {
        let mut inbox = self.inbox.lock().await;
        loop {
            let entries = self.read_nudges(&mut inbox).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// The first nudge of another process that was not read yet.
    async fn read_nudges(&self, inbox: &mut NudgeInbox) -> StoreResult<Vec<DueEntry>> {
        let now = self.now();
        let since = *inbox.since.get_or_insert(now);
        // The clock of the sender may be behind this one.
        let from = since.max(now.saturating_sub(KEPT)).saturating_sub(Span::from_micros_clamped(KEPT.as_micros() / 2));
        let range = Range { from: layout::ordered(from.as_micros()).to_vec(), ..Range::all(PAGE) };
        let rows = self.database.range(&layout::nudges(), &range, Columns::HEAD, Consistency::Committed).await?;
        let keys: HashSet<&Vec<u8>> = rows.iter().map(|row| &row.key).collect();
        inbox.read.retain(|key| keys.contains(key));
        for row in &rows {
            if !inbox.read.insert(row.key.clone()) {
                continue;
            }
            // A nudge that cannot be read is a lost one.
            let Ok(nudge) = from_json::<StoredNudge>(&row.head) else { continue };
            if nudge.process != self.process() {
                return Ok(nudge.entries.into_iter().filter_map(entry).collect());
            }
        }
        Ok(Vec::new())
    }
}

/// Why a nudge was not written, or may not have been.
fn failure(outcome: Outcome) -> Option<StoreError> {
    match outcome {
        Outcome::Applied => None,
        Outcome::Refused => Some(StoreError::Unavailable("a nudge was refused, which has no condition".into())),
        Outcome::Failed(error) => Some(error),
    }
}

fn entry((at, id, destination): (i64, u128, u64)) -> Option<DueEntry> {
    let id = layout::timer_id(&id.to_be_bytes())?;
    Some(DueEntry { at: Timestamp::from_micros(at), id, destination: Destination(destination) })
}
