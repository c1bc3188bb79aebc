//! What holds for this store on a real PostgreSQL: the contract, and what is this database's own.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests: a panic is how they fail")]

mod bulk;
mod bulkheads;
mod conformance;
mod crowds;
mod held_rows;
mod nodes;
mod nudges;
mod outages;
mod plans;
mod proxy;
mod searches;
mod setup;
mod slow_wires;
mod upgrade;
mod waiting_claims;

use domain::{Shard, Span};
use store::{Claim, ClaimToken, DueEntry, Member, NodeId, OnLocked, ShardCursor, ShardLease, Store};
use store_postgres::{PostgresOptions, PostgresStore};

/// A store on the database at `url`, set up.
async fn open(url: &str) -> PostgresStore {
    let store = PostgresStore::connect(&PostgresOptions::Url(url.to_owned())).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// The numbers of all migrations, in their order.
fn migrations() -> Vec<String> {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap();
    let number = |name: String| name.split('_').next().unwrap_or_default().trim_start_matches('0').to_owned();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.into_iter().map(number).collect()
}

fn all_shards(store: &impl Store) -> Vec<Shard> {
    (0..store.shards()).map(Shard).collect()
}

async fn acquire_all(store: &impl Store) -> Vec<ShardLease> {
    acquire_all_for(store, NodeId(1)).await
}

/// `node` comes to life and takes what it can get.
async fn acquire_all_for(store: &impl Store, node: NodeId) -> Vec<ShardLease> {
    store.heartbeat(&Member::new(node), Span::from_secs(600)).await.unwrap();
    store.acquire(node, &all_shards(store)).await.unwrap()
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
