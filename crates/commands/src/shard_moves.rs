use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use domain::{Shard, Timestamp};
use store::{Cluster, Epoch};

/// How many moves are remembered.
const MOVES_MAX: usize = 50;

/// A shard that another node has acquired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMove {
    /// When it was seen, by the clock of the database.
    pub at: Timestamp,
    pub shard: Shard,
    /// The epoch of the new owner.
    pub epoch: Epoch,
    /// What the former owner was called; `None` where no node is known to have held it.
    pub from: Option<String>,
    pub to: String,
}

/// The latest moves, as far as this process has seen them. Cheap to clone; shared by all clones.
///
/// The database keeps only the present owner. Each state of the cluster that is read is shown here, and what differs from the last
/// one is a move.
#[derive(Debug, Clone, Default)]
pub struct ShardMoves(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    at: Timestamp,
    /// The epoch of each shard, and the name of the node that has held it last.
    shards: BTreeMap<Shard, (Epoch, String)>,
    /// The latest first.
    moves: VecDeque<ShardMove>,
}

impl ShardMoves {
    /// Compares the cluster with what it was. An older state than the last one is ignored.
    pub fn observe(&self, cluster: &Cluster) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cluster.now < seen.at {
            return;
        }
        let is_first_look = seen.shards.is_empty();
        seen.at = cluster.now;
        for state in &cluster.shards {
            let owner = state.owner.and_then(|owner| cluster.members.iter().find(|(member, _)| member.node == owner));
            let Some((owner, _)) = owner else { continue };
            if seen.shards.get(&state.shard).is_some_and(|(epoch, _)| state.epoch <= *epoch) {
                continue;
            }
            let to = owner.name.clone();
            let from = seen.shards.insert(state.shard, (state.epoch, to.clone())).map(|(_, from)| from);
            if !is_first_look {
                seen.moves.push_front(ShardMove { at: cluster.now, shard: state.shard, epoch: state.epoch, from, to });
            }
        }
        seen.moves.truncate(MOVES_MAX);
    }

    /// The latest first.
    pub fn latest(&self) -> Vec<ShardMove> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).moves.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::Span;
    use store::{Member, NodeId, ShardState};

    use super::*;

    /// Two nodes, `a` and `b`, and who of them holds each shard in which epoch.
    fn cluster(second: u32, owners: &[(&str, i64)]) -> Cluster {
        let node = |name: &str| NodeId(u128::from(name.as_bytes()[0]));
        let member = |name: &str| (Member { name: name.to_owned(), ..Member::new(node(name)) }, Timestamp::MAX);
        let state = |(shard, (owner, epoch)): (u16, &(&str, i64))| ShardState {
            shard: Shard(shard),
            epoch: Epoch(*epoch),
            owner: (*owner != "-").then(|| node(owner)),
        };
        Cluster {
            now: Timestamp::from_micros(0).saturating_add(Span::from_secs(second)),
            members: vec![member("a"), member("b")],
            shards: (0..).zip(owners).map(state).collect(),
            oldest_overdue: None,
        }
    }

    fn told(moves: &ShardMoves) -> Vec<String> {
        let told = |one: ShardMove| {
            let seconds = one.at.as_micros() / 1_000_000;
            format!("{seconds}: {} {}→{} {}", one.shard.0, one.from.unwrap_or_default(), one.to, one.epoch.0)
        };
        moves.latest().into_iter().map(told).collect()
    }

    #[test]
    fn what_differs_from_the_last_look_is_a_move() {
        let moves = ShardMoves::default();
        for (second, owners) in [
            (1, [("a", 1), ("a", 1), ("-", 0)]),
            // Handed over, and not acquired yet.
            (2, [("a", 1), ("-", 1), ("-", 0)]),
            (3, [("a", 1), ("b", 2), ("b", 1)]),
            (4, [("a", 1), ("b", 2), ("b", 1)]),
            // The same node again, after it was away.
            (5, [("a", 4), ("b", 2), ("b", 1)]),
            // Older than the last one.
            (3, [("a", 1), ("a", 1), ("-", 0)]),
        ] {
            moves.observe(&cluster(second, &owners));
        }
        assert_eq!(told(&moves), ["5: 0 a→a 4", "3: 2 →b 1", "3: 1 a→b 2"]);
    }

    #[test]
    fn only_the_latest_are_remembered() {
        let moves = ShardMoves::default();
        (1..=100).for_each(|epoch: u16| moves.observe(&cluster(epoch.into(), &[("a", epoch.into())])));
        assert_eq!((moves.latest().len(), moves.latest()[0].epoch), (MOVES_MAX, Epoch(100)));
    }
}
