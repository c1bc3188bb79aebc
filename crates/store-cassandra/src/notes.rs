//! What this process knows of the empty stretches of indexes: those that ranges met, and those that are noted in the partitions.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use store_partitioned::Partition;
use tokio::time::Instant;

use crate::gaps::Gaps;

/// The number of removed entries after which a stretch is looked for, and the shortest time between two such looks.
const REMOVALS: usize = 1_000;
const INTERVAL: Duration = Duration::from_secs(10);
/// Ranges that begin at a longer position begin at one entry: only those that begin at a time or at the beginning come again.
const BEGINNING_BYTES_MAX: usize = 9;
const OBSERVED_MAX: usize = 8;

/// From where to where ranges found nothing, the longest for each index and first byte.
#[derive(Default)]
pub struct Observed(Mutex<HashMap<Partition, Vec<Empty>>>);

/// The kind of the entries, and both ends.
type Empty = (i8, Vec<u8>, Vec<u8>);

impl Observed {
    pub fn note(&self, partition: &Partition, kind: i8, from: &[u8], to: &[u8]) {
        if from >= to || from.len() > BEGINNING_BYTES_MAX {
            return;
        }
        let mut all = lock(&self.0);
        let observed = all.entry(partition.clone()).or_default();
        let is_full = observed.len() >= OBSERVED_MAX;
        let alike = observed.iter_mut().find(|(known, begins, _)| *known == kind && begins.first() == from.first());
        match alike {
            Some((_, begins, ends)) if from <= begins.as_slice() => {
                *begins = from.to_vec();
                *ends = to.to_vec();
            }
            None if !is_full => observed.push((kind, from.to_vec(), to.to_vec())),
            _ => {}
        }
    }

    pub fn take(&self, partition: &Partition) -> Vec<Empty> {
        lock(&self.0).remove(partition).unwrap_or_default()
    }
}

/// What this process knows of the notes of partitions, and how many entries it has removed since it looked last.
#[derive(Default)]
pub struct Notes(Mutex<HashMap<Partition, Known>>);

#[derive(Default)]
struct Known {
    gaps: Option<Gaps>,
    removals: usize,
    looked: Option<Instant>,
}

impl Notes {
    pub fn known(&self, partition: &Partition) -> Option<Gaps> {
        lock(&self.0).get(partition)?.gaps.clone()
    }

    pub fn know(&self, partition: &Partition, gaps: Gaps) {
        lock(&self.0).entry(partition.clone()).or_default().gaps = Some(gaps);
    }

    pub fn forget(&self, partition: &Partition) {
        lock(&self.0).entry(partition.clone()).or_default().gaps = None;
    }

    pub fn count(&self, partition: &Partition, removals: usize) {
        lock(&self.0).entry(partition.clone()).or_default().removals += removals;
    }

    /// Whether it is time to look, which then counts as done.
    pub fn is_due(&self, partition: &Partition) -> bool {
        let mut all = lock(&self.0);
        let Some(known) = all.get_mut(partition) else { return false };
        let is_due = known.removals >= REMOVALS && known.looked.is_none_or(|looked| looked.elapsed() >= INTERVAL);
        if is_due {
            (known.removals, known.looked) = (0, Some(Instant::now()));
        }
        is_due
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
