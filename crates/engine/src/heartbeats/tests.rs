//! The firing is held up on purpose, and the node lives on.

use std::sync::{
    Mutex,
    mpsc::{Receiver, Sender, channel},
};

use delivery::{Attempted, NamespaceRules, Outcome};
use domain::{
    Callback, Definition, Delivery, Namespace, NewTimer, OnConflict, Options, RequestedTime, Span, SystemClock, Timer, TimerId,
    Timestamp,
};
use store::{Operation, Store};
use store_testing::{Faulty, Model};

use super::*;
use crate::{Deliver, Drained, Pipeline, PipelineMetrics};

/// Blocks its thread during each call, until it is told to go on.
struct Blocking {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Deliver for Blocking {
    type Prepared = ();

    async fn prepare(&self, _: &Timer) {}

    async fn attempt(&self, _: &Timer, _: u32, (): ()) -> Attempted {
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Attempted { outcome: Outcome::Delivered, record: None, trace: None }
    }
}

fn timer(now: Timestamp) -> NewTimer {
    let definition = Definition {
        id: TimerId::random(now),
        namespace: Namespace::default(),
        key: None,
        asked: RequestedTime::At(now),
        callback: Callback::from_json(r#"{"type":"http","url":"http://127.0.0.1/"}"#).unwrap(),
        metadata: None,
        correlation_id: None,
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    NewTimer { definition, execute_at: now, on_conflict: OnConflict::Reject, created_at: now }
}

#[tokio::test]
async fn a_node_whose_firing_thread_is_blocked_keeps_its_lease() {
    const LEASE: Span = Span::from_millis(2_100);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let store = Arc::new(Faulty::new(Arc::new(Model::new(Arc::clone(&clock), 1))));
    let as_store: Arc<dyn Store> = store.clone();
    let config = scheduler::Config { node_lease: LEASE, ..scheduler::Config::default() };
    let scheduler = Arc::new(Scheduler::new(Arc::clone(&as_store), Arc::clone(&clock), config));
    as_store.create(vec![timer(clock.now())]).await.unwrap();

    let (begun, has_begun) = channel();
    let (end, go_on) = channel();
    let pipeline = Arc::new(Pipeline {
        scheduler,
        deliverer: Arc::new(Blocking { begun, go_on: Mutex::new(go_on) }),
        store: as_store.clone(),
        timers: as_store.clone(),
        health: as_store.clone(),
        clock: Arc::clone(&clock),
        overdue_window: None,
        retry_interval_min: Span::ZERO,
        namespaces: Arc::new(NamespaceRules::default()),
        timer_page: None,
        metrics: PipelineMetrics::default(),
        heartbeats: Heartbeats::on(Handle::current()),
    });
    let stop = CancellationToken::new();
    let firing = std::thread::spawn({
        let stop = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        move || runtime.block_on(pipeline.run(stop))
    });
    tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();

    // The firing thread is blocked. There are 14 heartbeats in a lease: these take longer than one.
    let before = store.calls(Operation::Heartbeat);
    while store.calls(Operation::Heartbeat) < before + 20 {
        let cluster = as_store.cluster().await.unwrap();
        let [(_, lease_end)] = cluster.members[..] else { panic!("{cluster:?}") };
        assert!(lease_end > cluster.now, "the lease has run out: {cluster:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    end.send(()).unwrap();
    stop.cancel();
    let drained = tokio::task::spawn_blocking(move || firing.join()).await.unwrap().unwrap();
    assert_eq!(drained, Drained::Completely);
    assert!(as_store.cluster().await.unwrap().members.is_empty(), "it has left in order");
}
