//! Mistakes on purpose. A simulation that does not find them would not find those that were not planted either.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use domain::{Next, Shard, Status, Timer, TimerId, Timestamp};
use store::{Changed, Claim, Claimed, DueEntry, DueStore, Settlement, ShardCursor, ShardLease, Sharded, StoreResult, TimerStore};
use store_testing::Model;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A result counts whichever node brings it: it does not say under which claim and shard lease it came about.
    SettlesWithoutClaim,
    /// A completed timer takes everything with it that was due before it.
    DeletesByRange,
    /// A shard is read on from where it was read to, not from what was finished.
    ResumesWhereItWasRead,
    /// A claim with an unknown outcome is tried again as a new one.
    ClaimsAreRetriedAnew,
    /// Only what is told of is found.
    NothingIsSwept,
    /// A create without an answer is taken for done.
    CreateIsNotReadBack,
    /// The end of the own lease is judged by a clock that may be set.
    LeaseByTheWallClock,
    /// A cancel does not look whether the timer is being delivered.
    CancelsWithoutLooking,
    /// Claims of the living are taken for abandoned once their shard has changed hands.
    TakesFromTheLiving,
    /// A loop that ends for good when the store fails once.
    TheLoopEndsOnAnError,
    /// A node never compares its clock with the database's.
    TrustsItsOwnClock,
    /// What is delivered is what was read ahead, not what is stored when it is claimed.
    DeliversAnOldVersion,
}

/// The database, with those of the mistakes that are its own. Without one it is the model.
#[derive(Default)]
pub struct Tampering {
    bug: Option<Bug>,
    held: Mutex<BTreeMap<TimerId, Claimed>>,
    lost: Mutex<BTreeSet<TimerId>>,
    read_to: Mutex<BTreeMap<Shard, (Timestamp, TimerId)>>,
}

impl Tampering {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { bug, ..Self::default() }
    }

    fn is(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn is_lost(&self, id: TimerId) -> bool {
        self.lost.lock().unwrap().contains(&id)
    }

    pub async fn get(&self, model: &Model, id: TimerId) -> StoreResult<Option<Timer>> {
        Ok(model.get(id).await?.filter(|_| !self.is_lost(id)))
    }

    pub async fn due(&self, model: &Model, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let mut from = from.to_vec();
        if self.is(Bug::ResumesWhereItWasRead) {
            let read_to = self.read_to.lock().unwrap();
            from.iter_mut().for_each(|cursor| cursor.after = cursor.after.max(read_to.get(&cursor.shard).copied()));
        }
        let mut found = model.due(&from, until, limit).await?;
        found.retain(|entry| !self.is_lost(entry.id));
        let mut read_to = self.read_to.lock().unwrap();
        for entry in &found {
            let last = read_to.entry(entry.id.shard(model.shards())).or_insert((entry.at, entry.id));
            *last = (*last).max((entry.at, entry.id));
        }
        Ok(found)
    }

    pub async fn claim(&self, model: &Model, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let entries: Vec<DueEntry> = entries.iter().copied().filter(|entry| !self.is_lost(entry.id)).collect();
        let mut claimed = model.claim(claim, &entries).await?;
        if self.is(Bug::DeliversAnOldVersion) {
            claimed
                .iter_mut()
                .flat_map(|claimed| &mut claimed.timer)
                .for_each(|timer| timer.revision -= u32::from(timer.revision > 1));
        }
        self.held.lock().unwrap().extend(claimed.iter().map(|claimed| (claimed.entry.id, claimed.clone())));
        Ok(claimed)
    }

    pub async fn settle(&self, model: &Model, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let mut batch = batch.to_vec();
        if self.is(Bug::SettlesWithoutClaim) {
            let held = self.held.lock().unwrap();
            for settlement in &mut batch {
                if let Some(held) = held.get(&settlement.entry.id) {
                    (settlement.token, settlement.shard_lease, settlement.entry) = (held.token, held.shard_lease, held.entry);
                }
            }
        }
        let counted = model.settle(&batch).await?;
        if self.is(Bug::DeletesByRange) {
            for settlement in batch.iter().filter(|settlement| matches!(settlement.next, Next::Completed { .. })) {
                let from = [ShardCursor { shard: settlement.shard_lease.shard, after: None }];
                let before = model.due(&from, settlement.entry.at, usize::MAX).await?;
                self.lost.lock().unwrap().extend(before.iter().map(|entry| entry.id));
            }
        }
        Ok(counted)
    }

    pub async fn cancel(&self, model: &Model, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        Ok(match model.cancel(id, expected, now).await? {
            Changed::WrongStatus(timer) if timer.status == Status::Executing && self.is(Bug::CancelsWithoutLooking) => {
                Changed::Done(Timer { status: Status::Canceled, ..timer })
            }
            truth => truth,
        })
    }

    pub async fn expired_claims(&self, model: &Model, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        if !self.is(Bug::TakesFromTheLiving) {
            return model.expired_claims(shard_leases, limit).await;
        }
        let held: Vec<Claimed> = self.held.lock().unwrap().values().cloned().collect();
        let mut expired = Vec::new();
        for claimed in held {
            let shard = claimed.entry.id.shard(model.shards());
            let shard_lease = shard_leases
                .iter()
                .find(|shard_lease| shard_lease.shard == shard && shard_lease.epoch > claimed.shard_lease.epoch);
            let timer = model.get(claimed.entry.id).await?.filter(|timer| timer.status == Status::Executing);
            if let (Some(shard_lease), Some(_)) = (shard_lease, timer) {
                expired.push(Claimed { shard_lease: *shard_lease, ..claimed });
            }
        }
        Ok(expired)
    }
}
