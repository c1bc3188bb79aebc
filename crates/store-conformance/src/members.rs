//! Membership: heartbeats and leases.

use domain::{Shard, Span, Timestamp};
use store::{DEAD_MEMBERS_KEPT, Epoch, HeartbeatReply, Member, NodeId, ShardState};

use crate::{Fixture, NOW, Stage, ahead, fixture::skip, micros, millis, secs, stage::LONG, timer};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(u128::MAX);
const THREE: NodeId = NodeId(3);

fn nodes(reply: &HeartbeatReply) -> Vec<NodeId> {
    reply.members.iter().map(|member| member.node).collect()
}

pub async fn a_heartbeat_tells_who_lives(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    // Members are ordered by id, whichever came first; the first one ever is told of itself.
    assert_eq!(nodes(&stage.live(TWO).await), [TWO]);
    assert_eq!(nodes(&stage.live(ONE).await), [ONE, TWO]);
    assert_eq!(nodes(&stage.live(THREE).await), [ONE, THREE, TWO]);
    assert_eq!(nodes(&stage.live_for(ONE, Span::ZERO).await), [THREE, TWO], "a node without a lease is no member either");
    assert_eq!(nodes(&stage.live(TWO).await), [THREE, TWO]);
    assert_eq!(nodes(&stage.live(ONE).await), [ONE, THREE, TWO], "it lives again");
}

pub async fn a_node_lives_until_its_lease_runs_out(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let mut is_seen = false;
    // A database that is slow to answer needs a longer lease to show the node while it lives.
    for lease in [millis(50), millis(500), secs(5)] {
        stage.live_for(TWO, lease).await;
        is_seen = nodes(&stage.live(ONE).await) == [ONE, TWO];
        if is_seen {
            break;
        }
    }
    assert!(is_seen, "it lives until its lease runs out");
    stage.eventually("the lease runs out", || async { (nodes(&stage.live(ONE).await) == [ONE]).then_some(()) }).await;
}

pub async fn a_lease_ends_to_the_microsecond(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let Some(clock) = stage.clock() else {
        skip("a_lease_ends_to_the_microsecond", "its clock does not stand still");
        return;
    };
    for lease in [secs(10), micros(1), LONG] {
        stage.live_for(TWO, LONG).await;
        // The last heartbeat counts, also when its lease is shorter.
        let begun = stage.live_for(TWO, lease).await.now;
        clock.set(begun.saturating_add(lease).saturating_sub(micros(1)));
        assert_eq!(nodes(&stage.live(ONE).await), [ONE, TWO], "{lease:?}");
        clock.advance(micros(1));
        let reply = stage.live(ONE).await;
        assert_eq!(nodes(&reply), [ONE], "{lease:?}");
        assert_eq!(reply.now, begun.saturating_add(lease));
    }
    // A heartbeat begins the lease anew, however much of the old one is left.
    stage.live_for(TWO, secs(10)).await;
    clock.advance(secs(4));
    stage.live_for(TWO, secs(10)).await;
    clock.advance(secs(9));
    assert_eq!(nodes(&stage.live(ONE).await), [ONE, TWO]);
}

pub async fn a_lease_runs_by_the_databases_clock_whatever_the_nodes_own_says(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let hour = 3_600_000_000;
    let now = stage.live(ONE).await.now;
    for (node, skew_micros, lease, is_alive) in
        [(NodeId(10), hour, Span::ZERO, false), (NodeId(11), -hour, LONG, true), (NodeId(12), hour, LONG, true)]
    {
        let member = Member { skew_micros, started_at: ahead(secs(86_400)), ..Member::new(node) };
        let reply = stage.store.heartbeat(&member, lease).await.unwrap();
        assert_eq!(nodes(&reply).contains(&node), is_alive, "{member:?}");
        assert!(reply.now >= now && reply.now < now.saturating_add(LONG), "{} {}", reply.now, now);
        assert_eq!(nodes(&stage.live(ONE).await).contains(&node), is_alive, "{member:?}");
    }
}

pub async fn members_come_back_as_they_describe_themselves(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let texts = ["", "host-1:8080", "é 😀 \"quoted\" \'single\' \\ % _ ; --", "\t\n\r\u{7f}\u{fffd}", &"x".repeat(2_000)];
    let mut expected = Vec::new();
    for (number, text) in (1..).zip(texts) {
        let member = Member {
            node: NodeId(number << 90),
            name: text.to_owned(),
            version: text.chars().rev().collect(),
            started_at: NOW.saturating_add(micros(u32::try_from(number).unwrap())),
            takes_shards: number % 2 == 0,
            skew_micros: [0, 1, -1, i64::MAX, i64::MIN][expected.len()],
        };
        expected.push(member.clone());
        assert_eq!(stage.store.heartbeat(&member, LONG).await.unwrap().members, expected, "itself and those before");
    }
    let cluster = stage.store.cluster().await.unwrap();
    assert_eq!(cluster.members.into_iter().map(|(member, _)| member).collect::<Vec<_>>(), expected);
}

pub async fn a_member_may_say_something_else_each_time(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    stage.live(ONE).await;
    let changed = Member {
        node: ONE,
        name: "renamed".to_owned(),
        version: "2".to_owned(),
        started_at: ahead(secs(1)),
        takes_shards: false,
        skew_micros: -7,
    };
    assert_eq!(stage.store.heartbeat(&changed, LONG).await.unwrap().members, std::slice::from_ref(&changed));
    assert_eq!(stage.live(TWO).await.members, [changed, Member::new(TWO)]);
}

pub async fn a_heartbeat_tells_what_the_node_holds(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    assert_eq!(stage.live(ONE).await.held, []);
    let shard_leases = stage.acquire(ONE, &stage.all_shards()).await;
    assert_eq!(stage.live(ONE).await.held, shard_leases);
    assert_eq!(stage.live(TWO).await.held, []);
}

pub async fn a_node_that_lives_again_has_the_shards_that_were_not_taken(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    stage.die(ONE).await;
    assert_eq!(stage.live(ONE).await.held, shard_leases);
    assert_eq!(stage.join(TWO).await, [], "it lives");
}

pub async fn a_node_that_lives_again_has_lost_what_was_taken(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    stage.die(ONE).await;
    stage.live(TWO).await;
    let taken = stage.acquire(TWO, &[Shard(0)]).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(stage.live(ONE).await.held, shard_leases[1..]);
    assert_eq!(stage.acquire(ONE, &[Shard(0)]).await, []);
    assert_eq!(stage.live(TWO).await.held, taken);
}

pub async fn a_node_that_leaves_is_no_member_and_holds_nothing(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let shard_leases = stage.join(ONE).await;
    stage.live(TWO).await;
    stage.store.leave(ONE).await.unwrap();
    assert_eq!(nodes(&stage.live(TWO).await), [TWO]);
    let cluster = stage.store.cluster().await.unwrap();
    assert_eq!(cluster.members.len(), 1);
    assert!(cluster.shards.iter().all(|state| state.owner.is_none() && state.epoch == shard_leases[0].epoch), "{cluster:?}");
    let taken = stage.acquire(TWO, &stage.all_shards()).await;
    assert!(
        taken.len() == shard_leases.len() && taken.iter().zip(&shard_leases).all(|(new, old)| new.epoch > old.epoch),
        "{taken:?}"
    );
    // Leaving again takes nothing from another node.
    stage.store.leave(ONE).await.unwrap();
    stage.store.leave(THREE).await.unwrap();
    assert_eq!(stage.live(TWO).await.held, taken);
}

pub async fn claims_of_a_node_that_left_are_recovered_by_other_nodes(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
    stage.store.leave(stage.node).await.unwrap();
    let shard_leases = stage.join(TWO).await;
    let found = stage.store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(found.iter().map(|found| (found.entry, found.token)).collect::<Vec<_>>(), [(claimed.entry, claimed.token)]);
}

pub async fn the_cluster_shows_who_holds_what(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let empty = stage.store.cluster().await.unwrap();
    let unowned = |shard| ShardState { shard, epoch: Epoch(0), owner: None };
    assert_eq!(empty.shards, stage.all_shards().into_iter().map(unowned).collect::<Vec<_>>());
    assert_eq!((empty.members, empty.oldest_overdue), (vec![], None));

    stage.live_for(TWO, LONG).await;
    let begun = stage.live_for(ONE, secs(100)).await.now;
    let shard_leases = stage.acquire(ONE, &stage.all_shards()).await;
    stage.store.release(ONE, &shard_leases[1..]).await.unwrap();

    let cluster = stage.store.cluster().await.unwrap();
    assert!(cluster.now >= begun);
    assert_eq!(cluster.members.iter().map(|(member, _)| member.node).collect::<Vec<_>>(), [ONE, TWO]);
    assert_eq!(cluster.members[0].1, begun.saturating_add(secs(100)));
    let state = |shard_lease: &store::ShardLease| ShardState {
        shard: shard_lease.shard,
        epoch: shard_lease.epoch,
        owner: (shard_lease.shard == Shard(0)).then_some(ONE),
    };
    assert_eq!(cluster.shards, shard_leases.iter().map(state).collect::<Vec<_>>());

    // A dead node is still shown as the owner, and as a member whose lease has expired.
    stage.die(ONE).await;
    let cluster = stage.store.cluster().await.unwrap();
    assert_eq!(cluster.shards[0].owner, Some(ONE));
    assert!(cluster.members[0].0.node == ONE && cluster.members[0].1 <= cluster.now, "{cluster:?}");
    if let Some(clock) = stage.clock() {
        clock.advance(DEAD_MEMBERS_KEPT);
        let members = stage.store.cluster().await.unwrap().members;
        assert_eq!(members.iter().map(|(member, _)| member.node).collect::<Vec<_>>(), [TWO], "the other is not dead for so long");
    }
}

pub async fn the_cluster_shows_what_is_overdue(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // Everything around NOW is overdue by the database's clock, whichever it is.
    let oldest = || async { stage.store.cluster().await.unwrap().oldest_overdue };
    stage.create(timer("http://a.example/").due_at(Timestamp::MAX)).await;
    assert_eq!(oldest().await, None, "not due yet");
    let drafts = (0..200).map(|n| timer("http://a.example/").numbered(n).due_in(secs((n as u32 * 7_919) % 200 + 1)));
    stage.create_new(drafts.collect()).await;
    assert_eq!(oldest().await, Some(ahead(secs(1))));
    let first = stage.due(ahead(secs(1))).await;
    let claimed = stage.claim(&first).await;
    assert_eq!(oldest().await, Some(ahead(secs(2))), "what is executing is not late");
    stage.settle(&claimed[0], domain::Next::Pending { at: NOW, attempt: 1, error: None }).await;
    assert_eq!(oldest().await, Some(NOW));
}
