//! What holds for this store on a real MariaDB and a real MySQL: the contract, and what is these databases' own.
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

mod conformance;
mod database;
mod lists;
mod outages;
mod setup;

use domain::{Shard, Span};
use store::{Claim, ClaimToken, DueEntry, Member, NodeId, OnLocked, ShardCursor, ShardLease, Store};

use crate::database::open;

fn all_shards(store: &impl Store) -> Vec<Shard> {
    (0..store.shards()).map(Shard).collect()
}

/// A node comes to life and takes what it can get.
async fn acquire_all(store: &impl Store) -> Vec<ShardLease> {
    store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(600)).await.unwrap();
    store.acquire(NodeId(1), &all_shards(store)).await.unwrap()
}

async fn everything_due(store: &impl Store) -> Vec<DueEntry> {
    let from: Vec<_> = all_shards(store).into_iter().map(|shard| ShardCursor { shard, after: None }).collect();
    store.due(&from, domain::Timestamp::MAX, 100_000).await.unwrap()
}

fn claim(token: i64, shard_leases: &[ShardLease]) -> Claim {
    Claim {
        token: ClaimToken(token),
        shard_leases: shard_leases.to_vec(),
        lease: Span::from_secs(600),
        on_locked: OnLocked::Skip,
    }
}
