//! From pending to the end: reading ahead, claiming under the fence, settling, recovering, purging.
//!
//! ```text
//!   claim:   read rows ─▶ write token and epoch, each row under its own condition ─▶ read the epochs, linearizably
//!                                                                                      │ stands ─▶ handed out
//!                                                                                      └ ended  ─▶ taken back, nudged
//! ```
//!
//! A condition on a timer's row cannot reach the epoch of its shard, which is another row. So the epoch is read after the claim is
//! written. If it still stands, the claim was written before any other node took the shard, and that node sees it. If it
//! does not, nothing is handed out, and the claim is undone. A process that dies in between leaves a claim of an earlier epoch, which
//! the new owner recovers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use async_trait::async_trait;
use domain::{Shard, Span, TimerId, Timestamp};
use futures_util::future::BoxFuture;
use store::{Claim, Claimed, DueEntry, DueStore, MembershipStore, Settlement, ShardCursor, ShardLease, StoreError, StoreResult};

use crate::{
    Columns, Consistency, PartitionedStore, Range, after, layout,
    partitioned_store::ClaimsSeen,
    timer_row::TimerRow,
    transition::{self, Step, Taken},
};

/// How many claims are looked at in one page.
const CLAIMS_PAGE: usize = 1_000;

/// An entry to be claimed.
struct Wanted {
    entry: DueEntry,
    shard_lease: ShardLease,
    /// A replica knows of a later epoch: nothing new is claimed.
    is_overtaken: bool,
}

impl PartitionedStore {
    /// Which of these shard leases are current.
    pub(crate) async fn current(
        &self,
        shard_leases: impl IntoIterator<Item = ShardLease>,
        consistency: Consistency,
    ) -> StoreResult<HashSet<ShardLease>> {
        let asked: BTreeSet<ShardLease> = shard_leases.into_iter().collect();
        let shards: BTreeSet<Shard> = asked.iter().map(|shard_lease| shard_lease.shard).collect();
        let epochs = self.epochs(shards, consistency).await?;
        let is_current = |shard_lease: &ShardLease| epochs.get(&shard_lease.shard) == Some(&shard_lease.epoch.0);
        Ok(asked.into_iter().filter(is_current).collect())
    }

    async fn epochs(&self, shards: BTreeSet<Shard>, consistency: Consistency) -> StoreResult<BTreeMap<Shard, i64>> {
        let shards: Vec<Shard> = shards.into_iter().collect();
        let rows = self.shard_rows(&shards, consistency).await?;
        Ok(shards.into_iter().zip(rows).filter_map(|(shard, row)| Some((shard, row?.holding.epoch))).collect())
    }

    /// What is claimed by this call is handed out only if its shard still has the epoch under which it was claimed.
    async fn verify(&self, taken: Vec<Taken>) -> StoreResult<Vec<Claimed>> {
        let new: Vec<ShardLease> = taken.iter().filter(|taken| taken.is_new).map(|taken| taken.claimed.shard_lease).collect();
        if new.is_empty() || self.skips_verification() {
            return Ok(taken.into_iter().map(|taken| taken.claimed).collect());
        }
        // The claims are written, whatever fails from here on: they are read back with their token.
        let unknown = |error: StoreError| StoreError::Unknown(domain::Cause::of(error));
        let current = self.current(new, self.fence_consistency()).await.map_err(unknown)?;
        let (standing, ended): (Vec<Taken>, Vec<Taken>) =
            taken.into_iter().partition(|taken| !taken.is_new || current.contains(&taken.claimed.shard_lease));
        let ended: Vec<Claimed> = ended.into_iter().map(|taken| taken.claimed).collect();
        if !ended.is_empty() {
            self.take_back(&ended).await.map_err(unknown)?;
        }
        Ok(standing.into_iter().map(|taken| taken.claimed).collect())
    }

    /// Makes timers pending again that this call should not have claimed. They may lie behind the cursor of the new owner, who is
    /// nudged; should that get lost, the sweep for overdue timers finds them.
    async fn take_back(&self, ended: &[Claimed]) -> StoreResult<()> {
        if self.leaves_claims_behind() {
            return Ok(());
        }
        let items: Vec<(TimerId, &Claimed)> = ended.iter().map(|claimed| (claimed.entry.id, claimed)).collect();
        let taken_back = self.change(&items, Columns::HEAD, &|claimed, met| Ok(transition::take_back(claimed, met))).await;
        // Whatever became of it: what failed may be done, in part or as a whole.
        let entries: Vec<DueEntry> = ended.iter().map(|claimed| claimed.entry).collect();
        if !self.takes_back_silently()
            && let Err(error) = self.nudge(&entries).await
        {
            tracing::warn!(%error, timers = entries.len(), "the owner could not be nudged about timers that were taken back");
        }
        taken_back.map(drop)
    }

    #[cfg(feature = "testing")]
    fn skips_verification(&self) -> bool {
        self.bug == Some(crate::Bug::VerificationSkipped)
    }

    #[cfg(feature = "testing")]
    fn leaves_claims_behind(&self) -> bool {
        self.bug == Some(crate::Bug::LeftBehind)
    }

    #[cfg(feature = "testing")]
    fn takes_back_silently(&self) -> bool {
        self.bug == Some(crate::Bug::TakenBackSilently)
    }

    #[cfg(feature = "testing")]
    fn fence_consistency(&self) -> Consistency {
        if self.bug == Some(crate::Bug::StaleEpoch) { Consistency::Eventual } else { Consistency::Linearizable }
    }

    #[cfg(not(feature = "testing"))]
    const fn skips_verification(&self) -> bool {
        false
    }

    #[cfg(not(feature = "testing"))]
    const fn leaves_claims_behind(&self) -> bool {
        false
    }

    #[cfg(not(feature = "testing"))]
    const fn takes_back_silently(&self) -> bool {
        false
    }

    #[cfg(not(feature = "testing"))]
    const fn fence_consistency(&self) -> Consistency {
        Consistency::Linearizable
    }

    /// The claims of a shard whose maker is gone, as `is_gone` says by their epochs, or whose lease has run out: counted from the moment
    /// at which this process saw the claim first, by its monotonic clock.
    async fn abandoned(
        &self,
        shard_lease: ShardLease,
        is_gone: impl Fn(i64) -> bool + Send + Sync,
        limit: usize,
    ) -> StoreResult<Vec<Claimed>> {
        let (partition, now) = (layout::timers(shard_lease.shard), self.clock.monotonic());
        let before = self.with_claims_seen(|seen| seen.remove(&shard_lease.shard)).unwrap_or_default();
        let ((mut from, to), mut found, mut seen) = (layout::claimed_range(), Vec::new(), HashMap::new());
        while found.len() < limit {
            let range = Range::of(layout::STANDING, from, Some(to.clone()), CLAIMS_PAGE);
            let page = self.database.range(&partition, &range, Columns::NONE, Consistency::Committed).await?;
            let mut abandoned = HashMap::new();
            for row in &page {
                let Some((epoch, lease)) = layout::claimed_parts(&row.position) else { continue };
                let since = before.get(&row.position).copied().unwrap_or(now);
                seen.insert(row.position.clone(), since);
                if is_gone(epoch) || now.saturating_sub(since) >= Span::from_micros_clamped(lease).as_duration() {
                    abandoned.insert(row.key.clone(), row.position.clone());
                }
            }
            let keys: Vec<Vec<u8>> = abandoned.keys().take(limit - found.len()).cloned().collect();
            let rows = self.database.read(&partition, &keys, Columns::HEAD_AND_BODY, Consistency::Committed).await?;
            for row in rows.into_iter().flatten() {
                let Some(id) = layout::timer_id(&row.key) else { continue };
                let read = TimerRow::read(id, &row, Columns::HEAD_AND_BODY)?;
                let is_same = read.claim_position().as_ref() == abandoned.get(&row.key);
                found.extend(read.claimed(shard_lease).filter(|_| is_same));
            }
            match page.last() {
                Some(last) if page.len() == CLAIMS_PAGE => from = after(last.position.clone()),
                _ => {
                    self.with_claims_seen(|known| known.insert(shard_lease.shard, seen));
                    return Ok(found);
                }
            }
        }
        // The rest was not looked at: what was known of it stays.
        let known = before.into_iter().chain(seen).collect();
        self.with_claims_seen(|claims| claims.insert(shard_lease.shard, known));
        Ok(found)
    }

    fn with_claims_seen<T>(&self, work: impl FnOnce(&mut ClaimsSeen) -> T) -> T {
        work(&mut self.claims_seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[async_trait]
impl DueStore for PartitionedStore {
    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let mut work: Vec<BoxFuture<'_, StoreResult<Vec<DueEntry>>>> = Vec::with_capacity(from.len());
        for cursor in from {
            work.push(Box::pin(async move {
                let (from, to) = layout::pending_range(cursor.after, until);
                let range = Range::of(layout::STANDING, from, Some(to), limit);
                let partition = layout::timers(cursor.shard);
                let rows = self.database.range(&partition, &range, Columns::NONE, Consistency::Committed).await?;
                Ok(rows.iter().filter_map(|row| layout::pending_entry(&row.position)).collect())
            }));
        }
        let pages: StoreResult<Vec<Vec<DueEntry>>> = Self::on_all(work).await.into_iter().collect();
        Ok(pages?.concat())
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let leases: BTreeMap<Shard, ShardLease> =
            claim.shard_leases.iter().map(|shard_lease| (shard_lease.shard, *shard_lease)).collect();
        let mut named = HashSet::with_capacity(entries.len());
        let wanted: Vec<(DueEntry, ShardLease)> = entries
            .iter()
            .filter(|entry| named.insert(**entry))
            .filter_map(|entry| Some((*entry, *leases.get(&self.shard(entry.id))?)))
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // Epochs only rise: a later one that any replica knows of is a fact.
        let shards = wanted.iter().map(|(_, shard_lease)| shard_lease.shard).collect();
        let known = self.epochs(shards, Consistency::Eventual).await?;
        let is_overtaken =
            |shard_lease: &ShardLease| known.get(&shard_lease.shard).is_some_and(|epoch| *epoch > shard_lease.epoch.0);
        let items: Vec<(TimerId, Wanted)> = wanted
            .into_iter()
            .map(|(entry, shard_lease)| {
                (entry.id, Wanted { entry, shard_lease, is_overtaken: !self.skips_verification() && is_overtaken(&shard_lease) })
            })
            .collect();
        let taken = self
            .change(&items, Columns::HEAD_AND_BODY, &|wanted: &Wanted, met| {
                Ok(transition::claim(claim, wanted.entry, wanted.shard_lease, wanted.is_overtaken, met))
            })
            .await?;
        let mut given = HashSet::with_capacity(taken.len());
        let taken = taken.into_iter().flatten().filter(|taken| given.insert(taken.claimed.entry.id)).collect();
        self.verify(taken).await
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let clock = self.now();
        let log = batch.iter().any(|settlement| settlement.attempt.is_some());
        let columns = Columns { head: true, body: false, log };
        let items: Vec<(TimerId, &Settlement)> = batch.iter().map(|settlement| (settlement.entry.id, settlement)).collect();
        let mut counted =
            self.change(&items, columns, &|settlement, met| Ok(transition::settle(settlement, false, met, clock))).await?;
        // What was claimed under another shard lease counts for the current owner of the shard.
        let rest: Vec<usize> = (0..batch.len()).filter(|place| !counted[*place]).collect();
        if rest.is_empty() {
            return Ok(counted);
        }
        let leases = rest.iter().map(|place| batch[*place].shard_lease);
        let is_changed = counted.contains(&true);
        let unknown = |error: StoreError| if is_changed { StoreError::Unknown(domain::Cause::of(error)) } else { error };
        let current = self.current(leases, Consistency::Linearizable).await.map_err(unknown)?;
        let rest: Vec<usize> = rest.into_iter().filter(|place| current.contains(&batch[*place].shard_lease)).collect();
        let items: Vec<(TimerId, &Settlement)> = rest.iter().map(|place| items[*place]).collect();
        let late = self
            .change(&items, columns, &|settlement, met| Ok(transition::settle(settlement, true, met, clock)))
            .await
            .map_err(unknown)?;
        for (place, counts) in rest.into_iter().zip(late) {
            counted[place] = counts;
        }
        Ok(counted)
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let shards: Vec<Shard> = shard_leases.iter().map(|shard_lease| shard_lease.shard).collect();
        let (rows, living) = tokio::join!(self.shard_rows(&shards, Consistency::Committed), self.living());
        let (rows, living) = (rows?, living?);
        let mut found = Vec::new();
        for (shard_lease, row) in shard_leases.iter().zip(rows) {
            let Some(holding) = row.map(|row| row.holding).filter(|holding| holding.epoch == shard_lease.epoch.0) else {
                continue;
            };
            // A later epoch than the one that was read is that of a node which took the shard since.
            let is_gone = |epoch: i64| epoch < holding.epoch && holding.holder(epoch).is_none_or(|node| !living.contains(&node));
            found.extend(self.abandoned(*shard_lease, is_gone, limit - found.len()).await?);
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let mut work: Vec<BoxFuture<'_, StoreResult<Vec<(Timestamp, TimerId)>>>> = Vec::new();
        for shard in self.all_shards() {
            work.push(Box::pin(async move {
                let (from, to) = layout::ended_range(i64::MIN, before.as_micros());
                let range = Range::of(layout::STANDING, from, Some(to), limit);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::NONE, Consistency::Committed).await?;
                Ok(rows.iter().filter_map(|row| Some((layout::moment(&row.position, 1)?, layout::timer_id(&row.key)?))).collect())
            }));
        }
        let mut ended = Vec::new();
        for page in Self::on_all(work).await {
            ended.extend(page?);
        }
        ended.sort_unstable();
        ended.truncate(limit);
        let items: Vec<(TimerId, ())> = ended.into_iter().map(|(_, id)| (id, ())).collect();
        let is_over = |row: &TimerRow| row.head.status.is_finished() && row.head.updated_at < before.as_micros();
        let removed = self
            .change(&items, Columns::HEAD, &|(), met| match met.filter(is_over) {
                Some(row) => Ok(Step::Remove(Box::new(row), true)),
                None => Ok(Step::Leave(false)),
            })
            .await?;
        Ok(removed.into_iter().filter(|is_removed| *is_removed).count())
    }
}
