use std::{collections::HashMap, sync::Arc};

use domain::{Access, AccessKey, AccessKeyId, Caller, Namespace, Namespaces, Next, Rights, Span};
use store::{Digest, NodeDigest, NodeId, NodeReceiver, NodeStats, ReceiverReport, StatsStore};

use super::*;
use crate::{
    Commands, NewTimerRequest,
    rig::{NOW, Rig, plain},
};

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

fn on_behalf_of(rig: &Rig, names: &[&str]) -> Commands {
    let access =
        Access { namespaces: Namespaces::Only(names.iter().map(|name| namespace(name)).collect()), rights: Rights::Read };
    rig.commands.on_behalf_of(Caller::Holder(Arc::new(AccessKey::issue("k", access, [7; 32], NOW).unwrap().0)))
}

async fn created(rig: &Rig, name: &str) {
    rig.commands.create(NewTimerRequest { namespace: namespace(name), ..plain() }).await.unwrap();
}

/// How many are due within the hour after the next.
async fn due(commands: &Commands, names: &[&str]) -> Result<u64, String> {
    let request = PeriodRequest { step: Some(Span::from_secs(3_600)), ..PeriodRequest::default() };
    let names: Vec<_> = names.iter().map(|name| namespace(name)).collect();
    let due = commands.due_buckets(&names, &request).await.map_err(|error| error.to_string())?;
    assert!(due.buckets.len() == 60 && due.is_complete && !due.is_estimate);
    Ok(due.buckets.iter().map(|(_, pending)| pending).sum())
}

#[tokio::test]
async fn a_key_counts_what_is_due_in_its_own_namespaces() {
    let rig = Rig::new();
    for name in ["a", "a", "b", "c"] {
        created(&rig, name).await;
    }
    for (bound, named, pending) in [
        (&["a"][..], &[][..], Some(2)),
        (&["a", "b"], &[], Some(3)),
        (&["a", "b"], &["b"], Some(1)),
        (&["a", "b"], &["b", "c"], None),
    ] {
        assert_eq!(due(&on_behalf_of(&rig, bound), named).await.ok(), pending, "{bound:?} {named:?}");
    }
    assert_eq!((due(&rig.commands, &[]).await, due(&rig.commands, &["c"]).await), (Ok(4), Ok(1)));
}

#[tokio::test]
async fn what_is_due_is_counted_once_a_second() {
    let rig = Rig::new();
    for (wait_millis, pending) in [(0, 1), (999, 1), (1, 3)] {
        rig.clock.advance(Span::from_millis(wait_millis));
        created(&rig, "a").await;
        assert_eq!(due(&rig.commands, &[]).await, Ok(pending));
    }
}

fn digest(node: u128, minutes_ago: i64, name: Option<&str>, fired: u64) -> NodeDigest {
    let digest = Digest { fired, ..Digest::default() };
    NodeDigest { node: NodeId(node), minute: NOW.minute() - minutes_ago, namespace: name.map(namespace), digest }
}

async fn fired(commands: &Commands, names: &[&str]) -> Vec<u64> {
    let names: Vec<_> = names.iter().map(|name| namespace(name)).collect();
    let from = Some(NOW.saturating_sub(Span::from_secs(120)));
    let to = Some(NOW.saturating_add(Span::from_secs(60)));
    let request = PeriodRequest { from, to, step: None };
    let fired = commands.fired_buckets(&names, &request).await.unwrap();
    fired.buckets.iter().map(|(_, digest)| digest.fired).collect()
}

#[tokio::test]
async fn what_was_fired_is_added_up_over_nodes_and_newer_in_this_process() {
    let mut rig = Rig::new();
    let written = vec![
        digest(1, 0, None, 5),
        digest(1, 2, None, 7),
        digest(2, 0, None, 100),
        digest(2, 0, Some("a"), 60),
        digest(2, 1, Some("b"), 40),
        digest(2, 90, None, 1),
    ];
    let stats = NodeStats { digests: written, receivers: Vec::new(), forget_before: NOW.saturating_sub(Span::from_secs(9_000)) };
    rig.store.record_stats(&stats).await.unwrap();
    rig.commands.stats.live.digests = Arc::new(|| vec![digest(1, 0, None, 6), digest(1, 0, Some("a"), 6)]);
    assert_eq!(fired(&rig.commands, &[]).await, [7, 0, 106]);
    assert_eq!(fired(&rig.commands, &["a"]).await, [0, 0, 66]);
    assert_eq!(fired(&on_behalf_of(&rig, &["a", "b"]), &[]).await, [0, 40, 66]);
    assert_eq!(fired(&on_behalf_of(&rig, &["c"]), &[]).await, [0, 0, 0]);
}

#[tokio::test]
async fn a_key_sees_the_receivers_of_its_own_namespaces() {
    let mut rig = Rig::new();
    let receiver = |node, name, destination: &str, in_flight| NodeReceiver {
        node: NodeId(node),
        namespace: namespace(name),
        destination: destination.to_owned(),
        written_at: NOW,
        report: ReceiverReport { in_flight, ..ReceiverReport::default() },
    };
    let receivers = vec![receiver(1, "a", "x:80", 1), receiver(2, "a", "x:80", 10), receiver(2, "b", "x:80", 100)];
    rig.store.record_stats(&NodeStats { digests: Vec::new(), receivers, forget_before: NOW }).await.unwrap();
    rig.commands.stats.live.receivers = Arc::new(move || vec![receiver(1, "a", "x:80", 2), receiver(1, "b", "y:80", 4)]);
    let seen = async |commands: &Commands| {
        let met = commands.destinations(&[]).await.unwrap().destinations;
        met.into_iter().map(|destination| (destination.name, destination.in_flight)).collect::<Vec<_>>()
    };
    let told = |name: &str, in_flight| (name.to_owned(), in_flight);
    assert_eq!(seen(&rig.commands).await, [told("x:80", 112), told("y:80", 4)]);
    assert_eq!(seen(&on_behalf_of(&rig, &["a"])).await, [told("x:80", 12)]);
    assert_eq!(seen(&on_behalf_of(&rig, &["c"])).await, []);
}

#[tokio::test]
async fn the_administrator_sees_what_each_node_does() {
    let mut rig = Rig::new();
    let receiver = |node, name, age_secs, in_flight| NodeReceiver {
        node: NodeId(node),
        namespace: namespace(name),
        destination: "x:80".to_owned(),
        written_at: NOW.saturating_sub(Span::from_secs(age_secs)),
        report: ReceiverReport { in_flight, ..ReceiverReport::default() },
    };
    let receivers = vec![receiver(1, "a", 0, 1), receiver(2, "a", 10, 10), receiver(2, "b", 10, 20), receiver(3, "a", 40, 99)];
    let digests = vec![digest(1, 1, None, 5), digest(1, 0, None, 999), digest(2, 1, None, 30), digest(2, 1, Some("a"), 30)];
    let forget_before = NOW.saturating_sub(Span::from_secs(9_000));
    rig.store.record_stats(&NodeStats { digests, receivers, forget_before }).await.unwrap();
    rig.commands.stats.live.digests = Arc::new(|| vec![digest(1, 1, None, 120), digest(1, 1, Some("a"), 120)]);
    let loads = rig.commands.node_loads().await.unwrap();
    assert_eq!(loads[&NodeId(1)], NodeLoad { in_flight: 1, fires_per_second: 2.0 }, "this process knows more than it wrote down");
    assert_eq!(loads[&NodeId(2)], NodeLoad { in_flight: 30, fires_per_second: 0.5 });
    assert!(!loads.contains_key(&NodeId(3)), "it has written nothing for long");
    assert!(on_behalf_of(&rig, &["a"]).node_loads().await.is_err());
}

#[tokio::test]
async fn the_last_use_of_a_key_is_that_on_any_node() {
    let mut rig = Rig::new();
    let (one, other) = (AccessKeyId::random(NOW), AccessKeyId::random(NOW));
    let at = |minutes_ago: i64| Timestamp::from_micros(NOW.as_micros() - minutes_ago * 60_000_000);
    let used = move |node, minutes_ago: i64, key: AccessKeyId| {
        let mut counted = digest(node, minutes_ago, None, 0);
        counted.digest.keys_used.insert(key.to_string(), at(minutes_ago).as_micros());
        counted
    };
    let digests = vec![used(1, 90, one), used(2, 30, one), used(2, 2_000, other)];
    let forget_before = NOW.saturating_sub(Span::from_secs(200_000));
    rig.store.record_stats(&NodeStats { digests, receivers: Vec::new(), forget_before }).await.unwrap();
    assert_eq!(rig.commands.key_uses().await.unwrap(), HashMap::from([(one, at(30))]));
    rig.commands.stats.live.digests = Arc::new(move || vec![used(1, 0, one)]);
    assert_eq!(rig.commands.key_uses().await.unwrap(), HashMap::from([(one, NOW)]), "this process knows more than it wrote down");
    assert!(on_behalf_of(&rig, &["a"]).key_uses().await.is_err());
}

#[tokio::test]
async fn namespaces_are_those_with_timers_or_settings_and_that_the_key_opens() {
    let mut rig = Rig::new();
    for name in ["a", "a", "b"] {
        created(&rig, name).await;
    }
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    created(&rig, "a").await;
    let settings = |name: &str| NamespaceSettings {
        namespace: namespace(name),
        retry_policy: None,
        has_signing_secret: true,
        has_subjects: false,
    };
    rig.commands.stats = Stats::new(Live::default(), vec![settings("b"), settings("z")], ShardMoves::default());
    let seen = async |commands: &Commands| {
        let met = commands.namespaces().await.unwrap();
        assert!(met.is_complete && !met.pending_is_estimate && !met.failed_is_estimate);
        let told = |listed: ListedNamespace| {
            let count = listed.count;
            (count.namespace.to_string(), count.pending, count.failed, listed.settings.has_signing_secret)
        };
        met.namespaces.into_iter().map(told).collect::<Vec<_>>()
    };
    let told = |name: &str, pending, failed, has_secret| (name.to_owned(), pending, failed, has_secret);
    let all = [told("a", 1, 2, false), told("b", 0, 1, true), told("default", 0, 0, false), told("z", 0, 0, true)];
    assert_eq!(seen(&rig.commands).await, all);
    assert_eq!(seen(&on_behalf_of(&rig, &["b", "new"])).await, [told("b", 0, 1, true), told("new", 0, 0, false)]);
}
