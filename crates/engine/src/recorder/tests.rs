use domain::ManualClock;
use store::Operation;
use store_testing::{Fault, Faulty, Model};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);
const NODE: NodeId = NodeId(7);

fn definition(url: &str) -> Definition {
    let callback = domain::Callback::from_json(&format!(r#"{{"type":"http","url":"{url}"}}"#)).unwrap();
    Definition {
        id: domain::TimerId::random(NOW),
        namespace: Namespace::default(),
        key: None,
        asked: domain::RequestedTime::At(NOW),
        callback,
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: domain::Delivery::AtLeastOnce,
        group: None,
        options: domain::Options::default(),
    }
}

fn fire(recorder: &Recorder, url: &str) {
    let definition = definition(url);
    let call = recorder.call(&definition, NOW);
    call.end(&CallEnd { at: NOW, took: Duration::from_millis(3), failure: None, retry_at: None });
    let completed = Next::Completed { at: NOW };
    recorder.ended(Some(&definition.namespace), NOW, Some(Span::from_millis(2)), &completed, false);
}

fn faulty() -> Faulty<Model> {
    Faulty::new(Arc::new(Model::new(Arc::new(ManualClock::at(NOW)), 1)))
}

#[tokio::test]
async fn what_has_changed_is_written_once_and_again_after_a_failure() {
    let (recorder, store) = (Recorder::of(NODE), faulty());
    assert!(!recorder.write_once(&store, NOW).await.unwrap(), "nothing happened");
    fire(&recorder, "http://a/x");
    store.plan(Operation::RecordStats, Fault::NotDoneUnknown);
    recorder.write_once(&store, NOW).await.unwrap_err();
    assert!(recorder.write_once(&store, NOW).await.unwrap());
    assert!(!recorder.write_once(&store, NOW).await.unwrap());
    let digests = store.digests(&[], 0, i64::MAX).await.unwrap();
    assert_eq!((digests.len(), digests[0].digest.fired, digests[0].digest.completed), (1, 1, 1));
    let receivers = store.receivers(&[]).await.unwrap();
    assert_eq!((receivers.len(), receivers[0].destination.as_str(), receivers[0].report.in_flight), (1, "a:80", 0));
}

#[tokio::test]
async fn what_is_registered_is_counted_by_its_minute_and_namespace() {
    let (recorder, store) = (Recorder::of(NODE), faulty());
    let shop = Namespace::parse("shop").unwrap();
    for (namespace, after) in [(&shop, 0), (&shop, 1), (&Namespace::default(), 1), (&shop, 60)] {
        recorder.created(namespace, NOW.saturating_add(Span::from_secs(after)));
    }
    assert!(recorder.write_once(&store, NOW).await.unwrap());
    let created = async |namespaces: &[Namespace]| {
        let digests = store.digests(namespaces, 0, i64::MAX).await.unwrap();
        digests.iter().map(|digest| digest.digest.created).collect::<Vec<_>>()
    };
    assert_eq!((created(&[]).await, created(std::slice::from_ref(&shop)).await), (vec![3, 1], vec![2, 1]));
}

#[tokio::test]
async fn the_last_use_of_a_key_stays_known_as_long_as_some_node_runs() {
    let (recorder, store) = (Recorder::of(NODE), faulty());
    let (used, idle) = (AccessKeyId::random(NOW), AccessKeyId::random(NOW));
    let hours = |hours: u32| NOW.saturating_add(Span::from_secs(hours * 3600));
    recorder.key_used(idle, NOW);
    recorder.key_used(used, NOW);
    assert!(recorder.write_once(&store, NOW).await.unwrap());
    assert_eq!(recorder.carry_once(&store, hours(12)).await.unwrap(), 0, "it is known for a day");
    recorder.key_used(used, hours(12));
    assert!(recorder.write_once(&store, hours(12)).await.unwrap());
    // Another node, after a downtime of a week: it finds what was written last, and keeps it.
    let (next, later) = (Recorder::of(NodeId(8)), hours(12 + 7 * 24));
    assert_eq!(next.carry_once(&store, later).await.unwrap(), 2);
    assert!(next.write_once(&store, later).await.unwrap());
    assert_eq!(recorder.carry_once(&store, later).await.unwrap(), 0, "one node is enough");
    let digests = store.digests(&[], 0, i64::MAX).await.unwrap();
    let keys: Vec<_> = digests.iter().flat_map(|digest| digest.digest.keys_used.clone()).collect();
    let mut expected = vec![(idle.to_string(), NOW.as_micros()), (used.to_string(), hours(12).as_micros())];
    expected.sort();
    assert_eq!((digests.len(), keys), (1, expected));
}

#[tokio::test(start_paused = true)]
async fn the_last_use_of_a_key_survives_a_downtime() {
    let store = Arc::new(faulty());
    let key = AccessKeyId::random(NOW);
    let before = Recorder::of(NODE);
    before.key_used(key, NOW);
    assert!(before.write_once(store.as_ref(), NOW).await.unwrap());
    let later = NOW.saturating_add(Span::from_secs(30 * 24 * 3600));
    let (recorder, stop) = (Arc::new(Recorder::of(NodeId(8))), CancellationToken::new());
    recorder.created(&Namespace::default(), later);
    let running = Arc::clone(&recorder).run(store.clone(), Arc::new(ManualClock::at(later)), stop.clone(), async {});
    let running = tokio::spawn(running);
    tokio::time::sleep(INTERVAL * 2).await;
    stop.cancel();
    running.await.unwrap();
    let digests = store.digests(&[], 0, i64::MAX).await.unwrap();
    assert_eq!((digests.len(), digests[0].digest.keys_used.get(&key.to_string())), (1, Some(&NOW.as_micros())));
}

#[tokio::test]
async fn a_call_under_way_counts_until_it_ends_however_it_does() {
    let (recorder, store) = (Recorder::of(NODE), faulty());
    let definition = definition("http://a/x");
    let in_flight = || recorder.receivers(NOW).iter().map(|receiver| receiver.report.in_flight).sum::<u32>();
    let calls = [recorder.call(&definition, NOW), recorder.call(&definition, NOW)];
    assert_eq!((in_flight(), recorder.receivers(NOW).len()), (2, 1));
    assert!(recorder.write_once(&store, NOW).await.unwrap(), "one that hangs is told of");
    drop(calls);
    assert_eq!(in_flight(), 0);
    assert_eq!(store.receivers(&[]).await.unwrap()[0].report.in_flight, 2, "as of the last write");
}

#[tokio::test(start_paused = true)]
async fn the_last_seconds_are_written_when_the_service_stops() {
    let (recorder, store) = (Arc::new(Recorder::of(NODE)), Arc::new(faulty()));
    let stop = CancellationToken::new();
    stop.cancel();
    let last = Arc::clone(&recorder);
    let drained = async move { fire(&last, "http://a/x") };
    let clock = Arc::new(ManualClock::at(NOW));
    Arc::clone(&recorder).run(store.clone(), clock, stop, drained).await;
    assert_eq!(store.digests(&[], 0, i64::MAX).await.unwrap().len(), 1);
}
