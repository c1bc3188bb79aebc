//! Which shard belongs to which node: the same answer on every node that knows the same members, without a message between them.

use domain::Shard;
use store::{Member, NodeId};

use crate::hash::mix;

/// The shards that `node` should hold, in order; none if it takes none.
///
/// Every shard ranks the nodes by a hash of both (rendezvous), and goes to the first of them that has room. The rank of two nodes
/// never depends on a third, so that little moves when one comes or goes; the room keeps the shares equal to within one shard.
pub fn shards_of(node: NodeId, members: &[Member], shards: u16) -> Vec<Shard> {
    let mut takers: Vec<Taker> =
        members.iter().filter(|member| member.takes_shards).map(|member| Taker { node: member.node, has: 0 }).collect();
    if takers.is_empty() {
        return Vec::new();
    }
    takers.sort_unstable_by_key(|taker| taker.node);
    let each = usize::from(shards) / takers.len();
    // The number of nodes that get one shard more than the rest.
    let mut extra = usize::from(shards) % takers.len();
    let mut mine = Vec::new();
    for shard in (0..shards).map(Shard) {
        let has_capacity = |taker: &&mut Taker| taker.has < each || (taker.has == each && extra > 0);
        let Some(taker) = takers.iter_mut().filter(has_capacity).max_by_key(|taker| rank(taker.node, shard)) else { continue };
        if taker.has == each {
            extra -= 1;
        }
        taker.has += 1;
        if taker.node == node {
            mine.push(shard);
        }
    }
    mine
}

struct Taker {
    node: NodeId,
    has: usize,
}

/// How much this shard wants this node. Written out, so that it is the same in every version and on every machine.
fn rank(node: NodeId, shard: Shard) -> u64 {
    let (high, low) = ((node.0 >> 64) as u64, node.0 as u64);
    mix(mix(high) ^ low.rotate_left(17) ^ mix(u64::from(shard.0) + 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SHARDS: u16 = 64;

    fn members(count: u128) -> Vec<Member> {
        (1..=count).map(|n| Member::new(NodeId(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))).collect()
    }

    fn owners(members: &[Member]) -> BTreeMap<Shard, NodeId> {
        let of =
            |member: &Member| shards_of(member.node, members, SHARDS).into_iter().map(|shard| (shard, member.node)).collect();
        let all: Vec<Vec<(Shard, NodeId)>> = members.iter().map(of).collect();
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), usize::from(SHARDS), "each shard has one owner");
        all.into_iter().flatten().collect()
    }

    #[test]
    fn every_shard_has_one_owner_and_shares_are_equal() {
        for count in [1, 2, 3, 4, 5, 7, 16, 63, 64] {
            let members = members(count);
            assert_eq!(owners(&members).len(), usize::from(SHARDS));
            let shares: Vec<_> = members.iter().map(|member| shards_of(member.node, &members, SHARDS).len()).collect();
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{count} nodes: {shares:?}");
        }
    }

    #[test]
    fn more_nodes_than_shards_leave_some_without() {
        let members = members(100);
        let shares: Vec<_> = members.iter().map(|member| shards_of(member.node, &members, SHARDS).len()).collect();
        assert_eq!((shares.iter().sum::<usize>(), shares.iter().max()), (64, Some(&1)));
    }

    #[test]
    fn the_order_in_which_members_are_told_changes_nothing() {
        let mut turned = members(5);
        turned.reverse();
        assert_eq!(owners(&members(5)), owners(&turned));
    }

    #[test]
    fn a_node_that_takes_none_gets_none_and_the_other_nodes_get_all() {
        let mut members = members(3);
        members[1].takes_shards = false;
        assert_eq!(shards_of(members[1].node, &members, SHARDS), []);
        assert!(owners(&members).values().all(|owner| *owner != members[1].node));
        members.iter_mut().for_each(|member| member.takes_shards = false);
        assert_eq!(shards_of(members[0].node, &members, SHARDS), []);
        assert_eq!(shards_of(NodeId(1), &[], SHARDS), []);
    }

    #[test]
    fn little_moves_when_one_comes_or_goes() {
        for count in 2..=8 {
            let (before, after) = (owners(&members(count)), owners(&members(count + 1)));
            let moved = before.iter().filter(|(shard, owner)| after[*shard] != **owner).count();
            let least = usize::from(SHARDS) / (count as usize + 1);
            assert!(moved <= least * 2 + 2, "{count} to {} nodes moved {moved}, {least} would have to", count + 1);
        }
    }
}
