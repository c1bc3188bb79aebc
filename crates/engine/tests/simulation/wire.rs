//! The way from a node to the database, and what the node's own mistakes do on it.

use std::sync::{Arc, Mutex};

use domain::{Cause, Clock, Missed, NewTimer, Shard, Span, Timer, TimerId, Timestamp};
use store::{
    Changed, Claim, ClaimToken, Claimed, Created, Decorator, DueEntry, HeartbeatReply, Member, NodeId, Operation, Settlement,
    ShardCursor, ShardLease, Store, StoreError, StoreResult,
};

use super::{clock::NodeClock, dice::Dice, gate::Gate, planted::Bug};

/// The store as one node reaches it: through its gate, and over a network that takes a moment each way. What was sent is carried
/// out even if its caller no longer waits for the answer.
pub struct Wire {
    pub inner: Arc<dyn Store>,
    pub gate: Arc<Gate>,
    /// Shut while the network loses everything between this node and the database.
    pub line: Arc<Gate>,
    pub clock: Arc<NodeClock>,
    pub dice: Mutex<Dice>,
    pub latency_millis_max: u64,
    pub are_nudges_lost: bool,
    pub bug: Option<Bug>,
    pub has_failed: Mutex<bool>,
}

impl Wire {
    async fn pass(&self) {
        self.line.pass().await;
        self.gate.pass().await;
    }

    async fn travel(&self) {
        let takes = self.dice.lock().unwrap().millis(0, self.latency_millis_max);
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
    }

    async fn write<T: Send + 'static>(&self, work: impl Future<Output = StoreResult<T>> + Send + 'static) -> StoreResult<T> {
        self.pass().await;
        self.travel().await;
        let answer = tokio::spawn(work).await.unwrap_or_else(|error| Err(StoreError::Unknown(Cause::of(error))));
        self.travel().await;
        self.pass().await;
        answer
    }

    async fn claim_as_is(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        let (inner, claim, entries) = (Arc::clone(&self.inner), claim.clone(), entries.to_vec());
        self.write(async move { inner.claim(&claim, &entries).await }).await
    }
}

/// What `create` would answer if all went well, presumed without asking the store.
fn presumed(new: &NewTimer) -> Created {
    Created::Created(Timer {
        definition: new.definition.clone(),
        execute_at: new.execute_at,
        status: domain::Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: new.created_at,
        updated_at: new.created_at,
        revision: 1,
        pause: None,
    })
}

impl Decorator for Wire {
    type Inner = dyn Store;

    fn inner(&self) -> &Self::Inner {
        self.inner.as_ref()
    }

    /// For reads. A write is carried out to its end even if its caller is gone, so it is spawned; see [`Wire::write`].
    async fn around<T: Send>(&self, _: Operation, work: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        self.pass().await;
        self.travel().await;
        let answer = work.await;
        self.travel().await;
        self.pass().await;
        answer
    }

    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let (inner, sent) = (Arc::clone(&self.inner), batch.clone());
        let answer = self.write(async move { inner.create(sent).await }).await;
        match answer {
            Err(StoreError::Unknown(_)) if self.bug == Some(Bug::CreateIsNotReadBack) => Ok(batch.iter().map(presumed).collect()),
            answer => answer,
        }
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let (inner, changed) = (Arc::clone(&self.inner), changed.clone());
        self.write(async move { inner.update(&changed, now).await }).await
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let inner = Arc::clone(&self.inner);
        self.write(async move { inner.cancel(id, expected, now).await }).await
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        let (inner, ids) = (Arc::clone(&self.inner), ids.to_vec());
        self.write(async move { inner.cancel_all(&ids, now).await }).await
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let inner = Arc::clone(&self.inner);
        self.write(async move { inner.reopen(id, expected, now).await }).await
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let (inner, changed) = (Arc::clone(&self.inner), changed.clone());
        self.write(async move { inner.revive(&changed, now).await }).await
    }

    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed> {
        let (inner, note) = (Arc::clone(&self.inner), note.map(str::to_owned));
        self.write(async move { inner.pause(id, expected, note.as_deref(), now).await }).await
    }

    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed> {
        let inner = Arc::clone(&self.inner);
        self.write(async move { inner.resume(id, expected, missed, now).await }).await
    }

    async fn due(&self, from: &[ShardCursor], until: Timestamp, limit: usize) -> StoreResult<Vec<DueEntry>> {
        // Only a sweep reads no further than to the present.
        if self.bug == Some(Bug::NothingIsSwept) && until <= self.clock.now() {
            return Ok(Vec::new());
        }
        self.around(Operation::Due, self.inner.due(from, until, limit)).await
    }

    async fn claim(&self, claim: &Claim, entries: &[DueEntry]) -> StoreResult<Vec<Claimed>> {
        if *self.has_failed.lock().unwrap() {
            return std::future::pending().await;
        }
        let answer = self.claim_as_is(claim, entries).await;
        match (answer, self.bug) {
            (Err(StoreError::Unknown(_)), Some(Bug::ClaimsAreRetriedAnew)) => {
                let token = ClaimToken(claim.token.0 ^ 1 | 2);
                self.claim_as_is(&Claim { token, ..claim.clone() }, entries).await
            }
            (Err(error), Some(Bug::TheLoopEndsOnAnError)) => {
                *self.has_failed.lock().unwrap() = true;
                Err(error)
            }
            (answer, _) => answer,
        }
    }

    async fn settle(&self, batch: &[Settlement]) -> StoreResult<Vec<bool>> {
        let (inner, batch) = (Arc::clone(&self.inner), batch.to_vec());
        self.write(async move { inner.settle(&batch).await }).await
    }

    async fn purge(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let inner = Arc::clone(&self.inner);
        self.write(async move { inner.purge(before, limit).await }).await
    }

    async fn heartbeat(&self, member: &Member, lease: Span) -> StoreResult<HeartbeatReply> {
        let (inner, member) = (Arc::clone(&self.inner), member.clone());
        let mut reply = self.write(async move { inner.heartbeat(&member, lease).await }).await?;
        if self.bug == Some(Bug::TrustsItsOwnClock) {
            reply.now = self.clock.now();
        }
        Ok(reply)
    }

    async fn acquire(&self, node: NodeId, shards: &[Shard]) -> StoreResult<Vec<ShardLease>> {
        let (inner, shards) = (Arc::clone(&self.inner), shards.to_vec());
        self.write(async move { inner.acquire(node, &shards).await }).await
    }

    async fn release(&self, node: NodeId, shard_leases: &[ShardLease]) -> StoreResult<()> {
        let (inner, shard_leases) = (Arc::clone(&self.inner), shard_leases.to_vec());
        self.write(async move { inner.release(node, &shard_leases).await }).await
    }

    async fn leave(&self, node: NodeId) -> StoreResult<()> {
        let inner = Arc::clone(&self.inner);
        self.write(async move { inner.leave(node).await }).await
    }

    async fn nudge(&self, entries: &[DueEntry]) -> StoreResult<()> {
        if self.are_nudges_lost {
            return Ok(());
        }
        let (inner, entries) = (Arc::clone(&self.inner), entries.to_vec());
        self.write(async move { inner.nudge(&entries).await }).await
    }
}
