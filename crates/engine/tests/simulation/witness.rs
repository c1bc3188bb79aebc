use std::sync::Arc;

use async_trait::async_trait;
use domain::{AccessKey, AccessKeyId, Attempt, JsonText, NewTimer, Shard, Span, Timer, TimerId, Timestamp};
use store::{
    Changed, Claim, Claimed, Cluster, Count, Created, DueEntry, Filter, HeartbeatReply, ListQuery, Member, Model, NodeId, Page,
    Settlement, ShardCursor, ShardLease, Store, StoreResult,
};

use super::{ledger::Ledger, planted::Tampering};

/// The database as one node reaches it, with a ledger of what really happens there, in the order in which it does.
pub struct Witness {
    pub node: NodeId,
    pub model: Model,
    pub tampering: Arc<Tampering>,
    pub ledger: Arc<Ledger>,
}

#[async_trait]
impl Store for Witness {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let created = self.model.create(batch).await?;
        created.iter().for_each(|created| self.ledger.created(self.node, created));
        Ok(created)
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        self.tampering.get(&self.model, id).await
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        self.model.list(query).await
    }

    async fn count(&self, filter: &Filter) -> StoreResult<Count> {
        self.model.count(filter).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.model.update(changed, now).await?;
        self.ledger.changed(self.node, "updated", &answer);
        Ok(answer)
    }

    async fn cancel(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.tampering.cancel(&self.model, id, now).await?;
        self.ledger.changed(self.node, "canceled", &answer);
        Ok(answer)
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        self.model.cancel_all(ids, now).await
    }

    async fn reopen(&self, id: TimerId, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.model.reopen(id, now).await?;
        self.ledger.changed(self.node, "reopened", &answer);
        Ok(answer)
    }

    async fn matching(&self, filter: &Filter, after: Option<TimerId>, limit: usize) -> StoreResult<Vec<TimerId>> {
        self.model.matching(filter, after, limit).await
    }

    async fn metadata(&self, ids: &[TimerId], bytes_max: usize) -> StoreResult<Vec<Option<JsonText>>> {
        self.model.metadata(ids, bytes_max).await
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        self.model.attempts(id).await
    }

    async fn ping(&self) -> StoreResult<()> {
        self.model.ping().await
    }

    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        self.tampering.due(&self.model, from, until, limit).await
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let claimed = self.tampering.claim(&self.model, claim, entries).await?;
        claimed.iter().for_each(|claimed| self.ledger.claimed(self.node, claimed));
        Ok(claimed)
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let counted = self.tampering.settle(&self.model, batch).await?;
        for (settlement, counted) in batch.iter().zip(&counted) {
            self.ledger.settled(self.node, settlement, *counted);
        }
        Ok(counted)
    }

    async fn expired_claims(&self, shard_leases: &[ShardLease], limit: usize) -> StoreResult<Vec<Claimed>> {
        self.tampering.expired_claims(&self.model, shard_leases, limit).await
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.model.purge(before, limit).await
    }

    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool> {
        self.model.add_key(key).await
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        self.model.keys().await
    }

    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool> {
        self.model.revoke_key(id, now).await
    }

    fn shards(&self) -> u16 {
        self.model.shards()
    }

    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        let reply = self.model.heartbeat(member, lease).await?;
        self.ledger.lives(member.node, lease);
        Ok(reply)
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let taken = self.model.acquire(node, shards).await?;
        taken.iter().for_each(|shard_lease| self.ledger.acquired(node, *shard_lease));
        Ok(taken)
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        self.model.release(node, shard_leases).await?;
        shard_leases.iter().for_each(|shard_lease| self.ledger.released(node, *shard_lease));
        Ok(())
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        self.model.leave(node).await?;
        self.ledger.left(node);
        Ok(())
    }

    async fn cluster(&self) -> StoreResult<Cluster> {
        self.model.cluster().await
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        self.model.nudge(entries).await
    }

    async fn nudged(&self) -> StoreResult<Vec<DueEntry>> {
        self.model.nudged().await
    }
}
