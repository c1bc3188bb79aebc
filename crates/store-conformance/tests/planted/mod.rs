#![expect(clippy::unwrap_used, reason = "this is part of a test: a panic is how it fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    AccessKey, Attempt, Clock, JsonText, ManualClock, Namespace, NewTimer, Next, Shard, Span, Status, Timer, TimerId, Timestamp,
};
use store::{
    BulkAction, BulkChange, BulkItem, BulkStore, Changed, Claim, ClaimToken, Claimed, Count, Created, Decorator, DueEntry,
    DueStore, Epoch, Filter, HeartbeatReply, KeyStore, ListQuery, Member, MembershipStore, NodeId, Order, Page, Progress,
    Settlement, ShardCursor, ShardLease, Store, StoreResult, TimerStore,
};
use store_conformance::Fixture;
use store_testing::Model;

macro_rules! bugs {
    ($($bug:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug { $($bug),* }

        impl Bug {
            pub const ALL: &[Self] = &[$(Self::$bug),*];
        }
    };
}

bugs! {
    CancelWhateverTheStatus
    UpdateWhateverTheRevision
    CancelWhateverTheRevision
    ReopenWhateverTheRevision
    BulkWhateverTheStatusRead
    UpdateForgetsTheRetry
    ClaimWithoutShardLease
    ClaimWhateverTheTime
    RepeatedClaimIsEmpty
    ClaimTwice
    ClaimAnswersEachEntry
    SettleWithAnyToken
    SettleWithoutShardLease
    SettleCountsWhatWasNotSent
    DueIncludesClaimed
    DueUntilIsExclusive
    DueLimitIsForAll
    ExpiredIncludesLiving
    ListCursorIsTimeOnly
    ListAlwaysGoesOn
    CountFoldsCase
    CreateAnswersById
    CreateStopsAtAConflict
    JsonIsTidied
    TimesAreMilliseconds
    PurgeWithoutLimit
    LeasesNeverEnd
    HeartbeatByOwnClock
    HeartbeatTellsOfTheDead
    HeldWhatWasTaken
    AcquireFromTheLiving
    AcquireByTheDead
    EpochNotRising
    LeaveKeepsTheShards
    SettleOnlyUnderTheCurrentShardLease
    ExpiredIgnoresLivingOwner
    ExpiredWhateverTheShardLease
    RepeatedClaimNeedsTheShard
    NudgesAreLost
    NudgesComeBack
    ReleaseByAnybody
    PrefixIsAPattern
    ListForgetsThePrefix
    CountForgetsThePrefix
    ReopenMovesTheDueTime
    AttemptsAreKeptForEver
    RevokedKeysComeBack
}

/// The model, and what the lies need to know about it.
pub struct Planted(Arc<Liar>);

struct Liar {
    bug: Option<Bug>,
    clock: Arc<ManualClock>,
    model: Model,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    claims: BTreeMap<TimerId, Claimed>,
    tokens: BTreeSet<i64>,
    owners: BTreeMap<Shard, (NodeId, ShardLease)>,
    members: BTreeMap<NodeId, Member>,
    said: Vec<Vec<DueEntry>>,
}

impl Planted {
    pub fn new(bug: Option<Bug>) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_800_000_000_000_000)));
        let model = Model::new(Arc::clone(&clock) as Arc<dyn Clock>, 4);
        Self(Arc::new(Liar { bug, clock, model, seen: Mutex::default() }))
    }
}

#[async_trait]
impl Fixture for Planted {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0) as Arc<dyn Store>
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.0.clock))
    }

    async fn another_process(&self) -> Option<Arc<dyn Store>> {
        let Liar { bug, clock, model, .. } = &*self.0;
        let (clock, model) = (Arc::clone(clock), model.another_process());
        Some(Arc::new(Liar { bug: *bug, clock, model, seen: Mutex::default() }))
    }
}

impl Liar {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn current(&self, shard: Shard) -> Option<ShardLease> {
        self.seen.lock().unwrap().owners.get(&shard).map(|(_, shard_lease)| *shard_lease)
    }

    fn lease(&self, lease: Span) -> Span {
        if self.has(Bug::LeasesNeverEnd) { Span::from_secs(u32::MAX) } else { lease }
    }

    /// The time at which a timer is really due, if it is pending.
    async fn due_time(&self, id: TimerId) -> Option<Timestamp> {
        let from = [ShardCursor { shard: id.shard(4), after: None }];
        let due = self.model.due(&from, Timestamp::MAX, 100_000).await.unwrap();
        due.into_iter().find(|entry| entry.id == id).map(|entry| entry.at)
    }
}

impl Decorator for Liar {
    type Inner = Model;

    fn inner(&self) -> &Model {
        &self.model
    }

    async fn create(&self, mut batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        for new in &mut batch {
            if self.has(Bug::JsonIsTidied) {
                let metadata = &mut new.definition.metadata;
                *metadata = metadata.as_ref().map(|json| JsonText::trusted(json.without_blanks()));
            }
            if self.has(Bug::TimesAreMilliseconds) {
                new.execute_at = Timestamp::from_micros(new.execute_at.as_micros() / 1_000 * 1_000);
            }
        }
        if self.has(Bug::CreateStopsAtAConflict) {
            let mut answers = Vec::new();
            for new in batch {
                let refused = matches!(answers.last(), Some(Created::Conflict(_)));
                let last: Option<Created> = answers.last().cloned();
                answers.push(match last {
                    Some(conflict) if refused => conflict,
                    _ => self.model.create(vec![new]).await?.remove(0),
                });
            }
            return Ok(answers);
        }
        let mut answers = self.model.create(batch).await?;
        if self.has(Bug::CreateAnswersById) {
            answers.sort_by_key(|created| created.timer().id());
        }
        Ok(answers)
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        let mut query = query.clone();
        if self.has(Bug::ListCursorIsTimeOnly)
            && let Some(after) = &mut query.after
        {
            let uuid = if query.order == Order::Ascending { "f" } else { "0" }.repeat(32);
            after.id = TimerId::parse("id", &uuid).unwrap();
        }
        if self.has(Bug::PrefixIsAPattern) {
            let literal = |prefix: String| prefix.split(['%', '_']).next().unwrap_or_default().to_owned();
            query.filter.key_prefix = query.filter.key_prefix.map(literal);
        }
        if self.has(Bug::ListForgetsThePrefix) {
            query.filter.key_prefix = None;
        }
        let mut page = self.model.list(&query).await?;
        if self.has(Bug::ListAlwaysGoesOn) {
            page.next = page.timers.last().map(|last| last.cursor(query.sort));
        }
        Ok(page)
    }

    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<Count> {
        if self.has(Bug::CountForgetsThePrefix) {
            return self.model.count(&Filter { key_prefix: None, ..filter.clone() }, budget).await;
        }
        let Some(namespace) = filter.namespaces.first().filter(|_| self.has(Bug::CountFoldsCase)) else {
            return self.model.count(filter, budget).await;
        };
        let texts = BTreeSet::from([namespace.as_str().to_lowercase(), namespace.as_str().to_uppercase()]);
        let mut count = 0;
        for text in texts {
            let namespaces = Namespace::parse(&text).into_iter().collect();
            count += self.model.count(&Filter { namespaces, ..filter.clone() }, budget).await?.timers;
        }
        Ok(Count::exactly(count))
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let mut changed = changed.clone();
        if self.has(Bug::UpdateWhateverTheRevision)
            && let Some(current) = self.model.get(changed.id()).await?
        {
            changed.revision = current.revision;
        }
        if self.has(Bug::UpdateForgetsTheRetry) {
            let elsewhere = Timer { execute_at: changed.execute_at.saturating_add(Span::from_micros(1)), ..changed.clone() };
            if let Changed::Done(moved) = self.model.update(&elsewhere, now).await? {
                changed.revision = moved.revision;
            }
        }
        self.model.update(&changed, now).await
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let expected = expected.filter(|_| !self.has(Bug::CancelWhateverTheRevision));
        Ok(match self.model.cancel(id, expected, now).await? {
            Changed::WrongStatus(met) if self.has(Bug::CancelWhateverTheStatus) => {
                Changed::Done(Timer { status: Status::Canceled, updated_at: now, ..met })
            }
            honest => honest,
        })
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let expected = expected.filter(|_| !self.has(Bug::ReopenWhateverTheRevision));
        Ok(match self.model.reopen(id, expected, now).await? {
            Changed::Done(timer) if self.has(Bug::ReopenMovesTheDueTime) => Changed::Done(Timer { execute_at: now, ..timer }),
            honest => honest,
        })
    }

    async fn change_all(
        &self,
        action: &BulkAction,
        items: &[BulkItem],
        progress: Option<&Progress>,
        now: Timestamp,
    ) -> StoreResult<Option<Vec<BulkChange>>> {
        let mut items = items.to_vec();
        if self.has(Bug::BulkWhateverTheStatusRead) {
            for item in &mut items {
                item.status = self.model.get(item.id).await?.map_or(item.status, |timer| timer.status);
            }
        }
        self.model.change_all(action, &items, progress, now).await
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        let mut attempts = self.model.attempts(id).await?;
        if self.has(Bug::AttemptsAreKeptForEver) && !attempts.is_empty() {
            attempts.insert(0, attempts[0].clone());
        }
        Ok(attempts)
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        let mut keys = self.model.keys().await?;
        if self.has(Bug::RevokedKeysComeBack) {
            keys.iter_mut().for_each(|key| key.revoked_at = None);
        }
        Ok(keys)
    }

    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        let until = if self.has(Bug::DueUntilIsExclusive) { until.saturating_sub(Span::from_micros(1)) } else { until };
        let mut due = self.model.due(from, until, limit).await?;
        if self.has(Bug::DueIncludesClaimed) {
            due.extend(self.seen.lock().unwrap().claims.values().map(|claimed| claimed.entry));
        }
        if self.has(Bug::DueLimitIsForAll) {
            due.truncate(limit);
        }
        Ok(due)
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let (mut claim, mut entries) = (claim.clone(), entries.to_vec());
        if self.has(Bug::ClaimWithoutShardLease) {
            claim.shard_leases = (0..4).filter_map(|shard| self.current(Shard(shard))).collect();
        }
        if self.has(Bug::ClaimWhateverTheTime) {
            for entry in &mut entries {
                entry.at = self.due_time(entry.id).await.unwrap_or(entry.at);
            }
        }
        let is_lost = |shard_lease: &ShardLease| self.current(shard_lease.shard) != Some(*shard_lease);
        if self.has(Bug::RepeatedClaimNeedsTheShard) && claim.shard_leases.iter().any(is_lost) {
            return Ok(Vec::new());
        }
        let is_repeated = !self.seen.lock().unwrap().tokens.insert(claim.token.0);
        if is_repeated && self.has(Bug::RepeatedClaimIsEmpty) {
            return Ok(Vec::new());
        }
        let mut claimed = self.model.claim(&claim, &entries).await?;
        if self.has(Bug::ClaimAnswersEachEntry) {
            let answer = |entry: &DueEntry| claimed.iter().find(|claimed| claimed.entry.id == entry.id).cloned();
            claimed = entries.iter().filter_map(answer).collect();
        }
        let mut seen = self.seen.lock().unwrap();
        if self.has(Bug::ClaimTwice) {
            claimed.extend(entries.iter().filter_map(|entry| seen.claims.get(&entry.id)).cloned());
        }
        seen.claims.extend(claimed.iter().map(|claimed| (claimed.entry.id, claimed.clone())));
        Ok(claimed)
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let token = |id| self.seen.lock().unwrap().claims.get(&id).map(|claimed: &Claimed| claimed.token);
        let lie = |settlement: &Settlement| {
            let mut settlement = settlement.clone();
            if self.has(Bug::SettleWithAnyToken) {
                let real: Option<ClaimToken> = token(settlement.entry.id);
                settlement.token = real.unwrap_or(settlement.token);
            }
            if self.has(Bug::SettleWithoutShardLease) {
                settlement.shard_lease = self.current(settlement.shard_lease.shard).unwrap_or(settlement.shard_lease);
            }
            if let (true, Next::GivenUp { at, error }) = (self.has(Bug::SettleCountsWhatWasNotSent), settlement.next.clone()) {
                settlement.next = Next::Failed { at, error };
            }
            settlement
        };
        let batch: Vec<_> = batch.iter().map(lie).collect();
        let is_lost = |settlement: &Settlement| self.current(settlement.shard_lease.shard) != Some(settlement.shard_lease);
        if self.has(Bug::SettleOnlyUnderTheCurrentShardLease) && batch.iter().any(is_lost) {
            return Ok(vec![false; batch.len()]);
        }
        self.model.settle(&batch).await
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        let mut shard_leases = shard_leases.to_vec();
        if self.has(Bug::ExpiredWhateverTheShardLease) {
            shard_leases = shard_leases.iter().filter_map(|shard_lease| self.current(shard_lease.shard)).collect();
        }
        let mut expired = self.model.expired_claims(&shard_leases, limit).await?;
        let is_found = |claimed: &Claimed| {
            let is_current = shard_leases.contains(&claimed.shard_lease);
            self.has(Bug::ExpiredIncludesLiving) && is_current || self.has(Bug::ExpiredIgnoresLivingOwner) && !is_current
        };
        expired.extend(self.seen.lock().unwrap().claims.values().filter(|claimed| is_found(claimed)).cloned());
        Ok(expired)
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.model.purge(before, if self.has(Bug::PurgeWithoutLimit) { usize::MAX } else { limit }).await
    }

    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        let mut lease = self.lease(lease);
        if self.has(Bug::HeartbeatByOwnClock) {
            lease = Span::from_micros_clamped(lease.as_micros().saturating_add(member.skew_micros));
        }
        let mut reply = self.model.heartbeat(member, lease).await?;
        let mut seen = self.seen.lock().unwrap();
        seen.members.insert(member.node, member.clone());
        if self.has(Bug::HeartbeatTellsOfTheDead) {
            reply.members = seen.members.values().cloned().collect();
        }
        if self.has(Bug::HeldWhatWasTaken) {
            let others = seen.owners.values().filter(|(node, _)| *node != member.node);
            reply.held.extend(others.map(|(_, shard_lease)| *shard_lease));
            reply.held.sort_unstable();
        }
        Ok(reply)
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let owners = self.seen.lock().unwrap().owners.clone();
        if self.has(Bug::AcquireFromTheLiving) {
            for (owner, shard_lease) in owners.values().filter(|(owner, _)| *owner != node) {
                self.model.release(*owner, &[*shard_lease]).await?;
            }
        }
        if self.has(Bug::AcquireByTheDead) {
            self.model.heartbeat(&Member::new(node), Span::from_secs(60)).await?;
        }
        let mut shard_leases = self.model.acquire(node, shards).await?;
        if self.has(Bug::EpochNotRising) {
            shard_leases.iter_mut().for_each(|shard_lease| shard_lease.epoch = Epoch(1));
        }
        let taken = shard_leases.iter().map(|shard_lease| (shard_lease.shard, (node, *shard_lease)));
        self.seen.lock().unwrap().owners.extend(taken);
        Ok(shard_leases)
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        if self.has(Bug::ReleaseByAnybody) {
            let owners: Vec<_> = self.seen.lock().unwrap().owners.values().copied().collect();
            for (owner, shard_lease) in
                owners.into_iter().filter(|(_, shard_lease)| shard_leases.iter().any(|t| t.shard == shard_lease.shard))
            {
                self.model.release(owner, &[shard_lease]).await?;
            }
            return Ok(());
        }
        self.model.release(node, shard_leases).await
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        if self.has(Bug::LeaveKeepsTheShards) {
            return Ok(());
        }
        self.model.leave(node).await
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        if self.has(Bug::NudgesAreLost) {
            return Ok(());
        }
        self.seen.lock().unwrap().said.push(entries.to_vec());
        self.model.nudge(entries).await
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        let said = self.seen.lock().unwrap().said.pop();
        match said.filter(|_| self.has(Bug::NudgesComeBack)) {
            Some(said) => Ok(said),
            None => self.model.nudged().await,
        }
    }
}
