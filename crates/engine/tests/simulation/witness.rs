use std::sync::Arc;

use domain::{NewTimer, Shard, Span, Timer, TimerId, Timestamp};
use store::{
    Changed, Claim, Claimed, Created, Decorator, DueEntry, HeartbeatReply, Member, MembershipStore, NodeId, Settlement,
    ShardCursor, ShardLease, StoreResult, TimerStore,
};
use store_testing::Model;

use super::{ledger::Ledger, planted::Tampering};

/// The database as one node reaches it. The ledger records what really happens there, in the order in which it does.
pub struct Witness {
    pub node: NodeId,
    pub model: Model,
    pub tampering: Arc<Tampering>,
    pub ledger: Arc<Ledger>,
}

impl Decorator for Witness {
    type Inner = Model;

    fn inner(&self) -> &Model {
        &self.model
    }

    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let created = self.model.create(batch).await?;
        created.iter().for_each(|created| self.ledger.created(self.node, created));
        Ok(created)
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        self.tampering.get(&self.model, id).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.model.update(changed, now).await?;
        self.ledger.changed(self.node, "updated", &answer);
        Ok(answer)
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.tampering.cancel(&self.model, id, expected, now).await?;
        self.ledger.changed(self.node, "canceled", &answer);
        Ok(answer)
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let answer = self.model.reopen(id, expected, now).await?;
        self.ledger.changed(self.node, "reopened", &answer);
        Ok(answer)
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
}
