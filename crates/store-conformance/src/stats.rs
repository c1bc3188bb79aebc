//! Statistics: what is pending, and what nodes write down of their work.

use std::{collections::BTreeMap, time::Duration};

use domain::{DurationHistogram, Namespace, Next, Status};
use store::{Digest, DueCounts, DueQuery, NamespaceCount, NodeDigest, NodeId, NodeReceiver, NodeStats, ReceiverReport};

use crate::{Fixture, NOW, Stage, ago, ahead, secs, stage::retried, timer};

/// Longer than any of these takes.
const AMPLE: Duration = Duration::from_secs(5);
const NODE: NodeId = NodeId(0x1234_5678_9abc_def0_1234_5678_9abc_def0);

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

fn namespaces(names: &[&str]) -> Vec<Namespace> {
    names.iter().map(|name| namespace(name)).collect()
}

/// Five buckets of two minutes, from a minute before [`NOW`].
fn query(names: &[&str]) -> DueQuery {
    let from = NOW.minute() - 1;
    DueQuery { namespaces: namespaces(names), from, to: from + 10, step: 2, now: NOW, budget: AMPLE }
}

async fn pending(stage: &Stage, query: &DueQuery) -> Vec<u64> {
    let DueCounts { pending, is_estimate } = stage.store.due_counts(query).await.unwrap();
    assert!(!is_estimate, "there is time for all of them");
    pending
}

pub async fn pending_timers_are_counted_by_the_minute_in_which_they_are_due(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    assert_eq!(pending(&stage, &query(&[])).await, [0; 5]);
    let draft = |n: u64| timer("http://a.example/").numbered(n);
    stage
        .create_new(vec![
            draft(1).due_at(ago(secs(61))),
            draft(2).due_at(ago(secs(60))),
            draft(3),
            draft(4).due_in(secs(59)),
            draft(5).due_in(secs(60)),
            draft(6).due_in(secs(8 * 60 + 59)),
            draft(7).due_in(secs(9 * 60)),
        ])
        .await;
    // The first is before the first bucket, and the last behind the last one.
    assert_eq!(pending(&stage, &query(&[])).await, [3, 1, 0, 0, 1]);
    let whole = DueQuery { step: 100, ..query(&[]) };
    assert_eq!(pending(&stage, &whole).await, [5]);
    assert_eq!(pending(&stage, &DueQuery { to: whole.from, ..whole }).await, [0; 0]);
}

pub async fn only_pending_timers_count_as_due_and_at_their_next_attempt(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for status in [Status::Executing, Status::Completed, Status::Failed, Status::Canceled] {
        stage.in_status(timer("http://a.example/"), status).await;
    }
    assert_eq!(pending(&stage, &query(&[])).await, [0; 5]);
    retried(&stage, timer("http://a.example/"), ahead(secs(4 * 60))).await;
    assert_eq!(pending(&stage, &query(&[])).await, [0, 0, 1, 0, 0]);
    assert_eq!(pending(&stage, &query(&["default"])).await, [0, 0, 1, 0, 0]);
}

pub async fn pending_timers_are_counted_by_namespace(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = |name: &str| timer("http://a.example/").namespace(name);
    stage.create_new(vec![draft("a"), draft("a"), draft("b"), draft("b \"é\"").due_in(secs(120)), draft("default")]).await;
    stage.in_status(draft("a"), Status::Executing).await;
    for (names, first_two) in [
        (&[][..], [4, 1]),
        (&["a"], [2, 0]),
        (&["b"], [1, 0]),
        (&["b \"é\""], [0, 1]),
        (&["default"], [1, 0]),
        (&["a", "b", "unknown"], [3, 0]),
        (&["A"], [0, 0]),
    ] {
        assert_eq!(pending(&stage, &query(names)).await[..2], first_two, "{names:?}");
    }
}

pub async fn a_budget_that_is_used_up_leaves_an_answer_that_says_so(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    stage.create_new((0..400).map(|n| timer("http://a.example/").due_in(secs(n))).collect()).await;
    let hurried = DueQuery { budget: Duration::ZERO, ..query(&[]) };
    let DueCounts { pending, is_estimate } = stage.store.due_counts(&hurried).await.unwrap();
    let is_whole = pending.len() == hurried.buckets() && pending.iter().sum::<u64>() == 400;
    assert!(is_whole || is_estimate || pending.len() < hurried.buckets(), "{pending:?}");
    stage.store.namespace_counts(&[], NOW, Duration::ZERO).await.unwrap();
}

fn digest(fired: u64, late_micros: u64) -> Digest {
    let mut lateness = DurationHistogram::default();
    (0..fired).for_each(|_| lateness.record(late_micros));
    let keys_used = BTreeMap::from([("01890a5d-ac96-774b-bcce-b302099a8057".to_owned(), NOW.as_micros())]);
    Digest { created: 7, fired, completed: fired, failed: 1, retried: 2, lateness_max_micros: late_micros, lateness, keys_used }
}

fn of_node(node: NodeId, minute: i64, name: Option<&str>, digest: Digest) -> NodeDigest {
    NodeDigest { node, minute, namespace: name.map(namespace), digest }
}

fn stats(digests: Vec<NodeDigest>) -> NodeStats {
    NodeStats { digests, receivers: Vec::new(), forget_before: ago(secs(3_600)) }
}

async fn digests(stage: &Stage, names: &[&str], from: i64, to: i64) -> Vec<NodeDigest> {
    let mut found = stage.store.digests(&namespaces(names), from, to).await.unwrap();
    found.sort_by_key(|digest| (digest.namespace.clone(), digest.minute, digest.node));
    found
}

pub async fn digests_come_back_by_namespace_and_minute(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let minute = NOW.minute();
    assert_eq!(digests(&stage, &[], minute - 60, minute + 60).await, []);
    let in_all = of_node(NODE, minute, None, digest(3, 1_500));
    let of_another = of_node(NodeId(2), minute, None, digest(1, 0));
    let (in_a, in_b) = (of_node(NODE, minute, Some("a"), digest(2, 9)), of_node(NODE, minute + 1, Some("b é"), digest(1, 1)));
    let all = vec![of_another.clone(), in_all.clone(), in_a.clone(), in_b.clone()];
    stage.store.record_stats(&stats(all)).await.unwrap();
    assert_eq!(digests(&stage, &[], minute, minute + 1).await, [of_another.clone(), in_all]);
    assert_eq!(digests(&stage, &["a", "b é", "c"], minute, minute + 2).await, [in_a.clone(), in_b]);
    assert_eq!(digests(&stage, &["a", "b é"], minute, minute + 1).await, [in_a]);
    assert_eq!(digests(&stage, &["a"], minute + 1, minute + 9).await, []);

    // The minute goes on, and is written once more.
    let grown = of_node(NODE, minute, None, digest(7, 2_000));
    stage.store.record_stats(&stats(vec![grown.clone()])).await.unwrap();
    assert_eq!(digests(&stage, &[], minute, minute + 1).await, [of_another, grown]);
}

fn receiver(node: NodeId, name: &str, destination: &str, age: u32) -> NodeReceiver {
    let report = ReceiverReport {
        in_flight: 3,
        calls: vec![(17, 5, 1)],
        last_error: Some("503 \"é\" \u{0}".to_owned()),
        failures_in_a_row: 1,
        ..ReceiverReport::default()
    };
    NodeReceiver { node, namespace: namespace(name), destination: destination.to_owned(), written_at: ago(secs(age)), report }
}

pub async fn reports_about_receivers_come_back_the_last_written_first(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    assert_eq!(stage.store.receivers(&[]).await.unwrap(), []);
    let (old, new) = (receiver(NODE, "a", "a.example:80", 9), receiver(NODE, "a", "b.example:80", 2));
    let (of_b, of_another) = (receiver(NODE, "b", "a.example:80", 5), receiver(NodeId(2), "a", "a.example:80", 1));
    let receivers = vec![old.clone(), new.clone(), of_b.clone(), of_another.clone()];
    stage.store.record_stats(&NodeStats { receivers, ..stats(Vec::new()) }).await.unwrap();
    assert_eq!(stage.store.receivers(&[]).await.unwrap(), [of_another.clone(), new.clone(), of_b.clone(), old]);
    assert_eq!(stage.store.receivers(&namespaces(&["b", "c"])).await.unwrap(), [of_b]);
    let again = receiver(NODE, "a", "a.example:80", 0);
    stage.store.record_stats(&NodeStats { receivers: vec![again.clone()], ..stats(Vec::new()) }).await.unwrap();
    assert_eq!(stage.store.receivers(&namespaces(&["a"])).await.unwrap(), [again, of_another, new]);
}

pub async fn what_was_written_long_ago_is_removed(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let minute = NOW.minute();
    let old = of_node(NodeId(9), minute - 61, None, digest(1, 1));
    let kept = of_node(NodeId(9), minute - 60, None, digest(1, 1));
    let receivers = vec![receiver(NodeId(9), "a", "old:80", 3_601), receiver(NodeId(9), "a", "kept:80", 3_600)];
    let forget_nothing = NodeStats { digests: vec![old, kept.clone()], receivers, forget_before: ago(secs(86_400)) };
    stage.store.record_stats(&forget_nothing).await.unwrap();
    assert_eq!(digests(&stage, &[], minute - 100, minute).await.len(), 2);
    stage.store.record_stats(&stats(Vec::new())).await.unwrap();
    assert_eq!(digests(&stage, &[], minute - 100, minute).await, [kept]);
    let left = stage.store.receivers(&[]).await.unwrap();
    assert_eq!(left.iter().map(|receiver| receiver.destination.as_str()).collect::<Vec<_>>(), ["kept:80"]);
}

pub async fn namespaces_are_listed_with_what_they_have(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let nothing = |name: &str| NamespaceCount { namespace: namespace(name), pending: 0, failed: 0, oldest_overdue: None };
    let counts = async |names: &[&str]| stage.store.namespace_counts(&namespaces(names), NOW, AMPLE).await.unwrap();
    assert_eq!(counts(&[]).await.namespaces, [nothing("default")]);
    assert_eq!(counts(&["b", "a"]).await.namespaces, [nothing("a"), nothing("b")]);

    let draft = |name: &str| timer("http://a.example/").namespace(name);
    stage.create_new(vec![draft("b"), draft("b").due_at(ago(secs(90))), draft("b").due_in(secs(90))]).await;
    stage.create(draft("late").due_in(secs(1))).await;
    let claimed = stage.claim_one(&stage.create(draft("a").due_at(ago(secs(99)))).await).await;
    stage.settle(&claimed, Next::Failed { at: NOW, error: "503".to_owned() }).await;
    stage.in_status(draft("a"), Status::Completed).await;
    stage.in_status(draft("busy").due_at(ago(secs(5))), Status::Executing).await;
    stage.in_status(draft("default"), Status::Canceled).await;
    let b = NamespaceCount { pending: 3, oldest_overdue: Some(ago(secs(90))), ..nothing("b") };
    let a = NamespaceCount { failed: 1, ..nothing("a") };
    let late = NamespaceCount { pending: 1, ..nothing("late") };
    let all = counts(&[]).await;
    assert_eq!(all.namespaces, [a, b.clone(), nothing("busy"), nothing("default"), late]);
    assert!(all.is_complete && !all.pending_is_estimate && !all.failed_is_estimate);
    assert_eq!(counts(&["b", "unknown"]).await.namespaces, [b, nothing("unknown")]);
}
