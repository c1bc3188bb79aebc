//! Who lives, by the database's clock, and who holds which shard.
//!
//! ```text
//!   node   ── heartbeat ──▶ lease_until        one small row, written in its place
//!   shard  ── acquire ────▶ epoch + 1, owner   held for as long as the owner's node lives
//!   shard lease ── acquire ────▶ (shard, epoch) was this node's
//! ```

use std::collections::HashSet;

use domain::Shard;
use serde::Serialize;
use sqlx::{Row, mysql::MySqlRow, types::Uuid};
use store::{DEAD_MEMBERS_KEPT, Epoch, NodeId, ShardLease};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const LOCK_SHARDS: &str = sql!("sql/lock_shards.sql");
pub(crate) const LIVING_NODES: &str = sql!("sql/living_nodes.sql");
pub(crate) const TAKE_SHARDS: &str = sql!("sql/take_shards.sql");
pub(crate) const REMEMBER_LEASES: &str = sql!("sql/remember_leases.sql");
pub(crate) const LONG_DEAD_NODES: &str = sql!("sql/long_dead_nodes.sql");
pub(crate) const FORGET_NODE: &str = sql!("sql/forget_node.sql");
pub(crate) const FORGET_LEASES: &str = sql!("sql/forget_leases.sql");
pub(crate) const RELEASE: &str = sql!("sql/release.sql");
pub(crate) const RELEASE_ALL: &str = sql!("sql/release_all.sql");

/// Takes those of the wanted shards that are free or whose owner is dead, each under a new epoch.
///
/// The shards are locked before it is read which nodes live: a shard that had to be waited for has an owner that lived before.
///
/// A node that looked dead may live again when its shards are taken, and be told by that heartbeat that it still holds them. For what it
/// claims from then on that is harmless. Until this commits, its shard leases are current, and what it claims under them stays its own, for
/// it lives. Afterwards it claims nothing, because the epoch has risen, and its next heartbeat tells it so. But what it had claimed
/// before may be recovered until that heartbeat commits: a node that was dead believes only a second one.
pub struct Acquire {
    node: NodeId,
    shards: Vec<i16>,
}

impl Acquire {
    /// Sorted: two nodes that want the same shards take them in the same order.
    pub fn new(node: NodeId, shards: &[Shard]) -> Self {
        let mut shards: Vec<i16> = shards.iter().map(|shard| shard.0.cast_signed()).collect();
        shards.sort_unstable();
        Self { node, shards }
    }

    /// Of the shards that are locked, the free ones are taken. Answers with what the node holds then.
    async fn take(&self, transaction: &mut Transaction<'_>) -> Result<Vec<ShardLease>, Failure> {
        let node = uuid(self.node);
        let locked = sqlx::query(LOCK_SHARDS)
            .bind(transaction.session().given(&self.shards).await?)
            .fetch_all(transaction.session())
            .await
            .or_not_done()?;
        let now = transaction.now;
        let alive = sqlx::query_scalar::<_, Uuid>(LIVING_NODES).bind(now).fetch_all(transaction.session()).await.or_not_done()?;
        let alive: HashSet<Uuid> = alive.into_iter().collect();
        let (mut held, mut free) = (Vec::new(), Vec::new());
        if !alive.contains(&node) {
            return Ok(held);
        }
        for row in &locked {
            let ShardLease { shard, epoch } = shard_lease(row).or_not_done()?;
            match row.try_get::<Option<Uuid>, _>("owner").or_not_done()? {
                Some(owner) if owner == node => held.push(ShardLease { shard, epoch }),
                Some(owner) if alive.contains(&owner) => {}
                _ => {
                    held.push(ShardLease { shard, epoch: Epoch(epoch.0 + 1) });
                    free.push(shard.0.cast_signed());
                }
            }
        }
        if !free.is_empty() {
            let free = transaction.session().given(&free).await?;
            sqlx::query(TAKE_SHARDS).bind(&free).bind(node).execute(transaction.session()).await.or_not_done()?;
            sqlx::query(REMEMBER_LEASES).bind(node).bind(&free).execute(transaction.session()).await.or_not_done()?;
        }
        Ok(held)
    }
}

impl Call<Connector> for Acquire {
    type Answer = Vec<ShardLease>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Vec<ShardLease>, Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        let mut shard_leases = self.take(&mut transaction).await?;
        // Nodes that are long dead are forgotten here, because this is rare.
        let before = transaction.now.saturating_sub(DEAD_MEMBERS_KEPT.as_micros());
        let dead = sqlx::query_scalar::<_, Uuid>(LONG_DEAD_NODES).bind(before).fetch_all(transaction.session()).await;
        for node in dead.or_not_done()? {
            forget(transaction.session(), node).await?;
        }
        transaction.commit().await?;
        shard_leases.sort_unstable_by_key(|shard_lease| shard_lease.shard);
        Ok(shard_leases)
    }
}

async fn forget(session: &mut Session, node: Uuid) -> Result<(), Failure> {
    for statement in [FORGET_NODE, FORGET_LEASES] {
        sqlx::query(statement).bind(node).execute(&mut *session).await.or_not_done()?;
    }
    Ok(())
}

pub struct Release {
    node: NodeId,
    shard_leases: Vec<Lease>,
}

#[derive(Serialize)]
struct Lease {
    shard: i16,
    epoch: i64,
}

impl Release {
    /// Sorted, as acquisitions are.
    pub fn new(node: NodeId, shard_leases: &[ShardLease]) -> Self {
        let row = |shard_lease: &ShardLease| Lease { shard: shard_lease.shard.0.cast_signed(), epoch: shard_lease.epoch.0 };
        let mut shard_leases: Vec<_> = shard_leases.iter().map(row).collect();
        shard_leases.sort_unstable_by_key(|row| row.shard);
        Self { node, shard_leases }
    }
}

impl Call<Connector> for Release {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let query = sqlx::query(RELEASE).bind(session.given(&self.shard_leases).await?).bind(uuid(self.node));
        query.execute(session).await.or_unknown()?;
        Ok(())
    }
}

/// Forgets a node and gives its shards back. What an acquisition that is still under way takes afterwards belongs to a node that is not
/// there, and is free for every other.
pub struct Leave(pub NodeId);

impl Call<Connector> for Leave {
    type Answer = ();
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        sqlx::query(RELEASE_ALL).bind(uuid(self.0)).execute(transaction.session()).await.or_not_done()?;
        forget(transaction.session(), uuid(self.0)).await?;
        transaction.commit().await
    }
}

pub const fn uuid(node: NodeId) -> Uuid {
    Uuid::from_u128(node.0)
}

/// The shard lease in a row with `shard` and `epoch`.
pub fn shard_lease(row: &MySqlRow) -> Result<ShardLease, sqlx::Error> {
    let shard = Shard(row.try_get::<i16, _>("shard")?.cast_unsigned());
    Ok(ShardLease { shard, epoch: Epoch(row.try_get("epoch")?) })
}
