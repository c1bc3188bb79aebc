use std::{collections::HashMap, time::Duration};

use rand::{SeedableRng, rngs::StdRng};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    history::Apis,
    rig::{Cluster, SHARDS},
};

const INTERVAL: Duration = Duration::from_millis(50);
/// A store may have to ask many servers.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Looks at the cluster all the time: epochs only rise, and no epoch has two owners.
pub struct Watch {
    stop: CancellationToken,
    looking: JoinHandle<Seen>,
}

#[derive(Default)]
struct Seen {
    looks: usize,
    held: Vec<usize>,
    last: Vec<i64>,
    owners: HashMap<(usize, i64), String>,
}

impl Watch {
    pub fn start(apis: Apis) -> Self {
        let stop = CancellationToken::new();
        let looking = tokio::spawn(look_on(apis, stop.clone()));
        Self { stop, looking }
    }

    /// For how much of the time each shard was held, at the least.
    pub async fn stop(self) -> f64 {
        self.stop.cancel();
        let seen = self.looking.await.expect("the owners of shards make sense");
        assert!(seen.looks > 0, "the cluster was never seen");
        let least = seen.held.iter().min().expect("there are shards");
        *least as f64 / seen.looks as f64
    }
}

async fn look_on(apis: Apis, stop: CancellationToken) -> Seen {
    let mut numbers = StdRng::seed_from_u64(0);
    let mut seen = Seen { held: vec![0; SHARDS], last: vec![0; SHARDS], ..Seen::default() };
    while !stop.is_cancelled() {
        // The node that is asked may be paused, or about to be killed.
        let client = apis.any(&mut numbers);
        if let Ok(Some(cluster)) = tokio::time::timeout(ANSWERED_WITHIN, client.try_cluster()).await {
            seen.add(&cluster);
        }
        tokio::time::sleep(INTERVAL).await;
    }
    seen
}

impl Seen {
    fn add(&mut self, cluster: &Cluster) {
        self.looks += 1;
        for (shard, (epoch, owner)) in cluster.epochs.iter().zip(&cluster.owners).enumerate() {
            assert!(*epoch >= self.last[shard], "the epoch of shard {shard} fell from {} to {epoch}", self.last[shard]);
            self.last[shard] = *epoch;
            let Some(owner) = owner else { continue };
            self.held[shard] += 1;
            let first = self.owners.entry((shard, *epoch)).or_insert_with(|| owner.clone());
            assert_eq!(first, owner, "two owners of shard {shard} in epoch {epoch}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_that_falls_or_has_two_owners_is_found() {
        let cluster = |epoch: i64, owner: &str| Cluster {
            nodes: HashMap::new(),
            owners: vec![Some(owner.to_owned())],
            epochs: vec![epoch],
        };
        for (first, second, is_good) in [
            ((1, "a"), (1, "a"), true),
            ((1, "a"), (2, "b"), true),
            ((1, "a"), (2, "a"), true),
            ((1, "a"), (1, "b"), false),
            ((2, "a"), (1, "a"), false),
        ] {
            let mut seen = Seen { held: vec![0], last: vec![0], ..Seen::default() };
            seen.add(&cluster(first.0, first.1));
            let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| seen.add(&cluster(second.0, second.1))));
            assert_eq!(added.is_ok(), is_good, "{first:?} {second:?}");
        }
    }
}
