//! What `Measured` shows of the calls of a store.

#![expect(clippy::unwrap_used, reason = "this is part of a test: a panic is how it fails")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use domain::{Clock, Timestamp};
use metrics_exporter_prometheus::PrometheusBuilder;

use store::{DueStore, HealthStore, Measured, Operation, TimerStore};
use store_testing::{Fault, Faulty, Model};

/// A clock on which a quarter of a second passes from one look to the next.
#[derive(Default)]
struct Ticking(AtomicU32);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(250) * self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What a scrape shows after `calls`.
fn scrape<F: Future<Output = ()>>(calls: impl FnOnce(Measured<Faulty<Model>>, Arc<Faulty<Model>>) -> F) -> String {
    let clock: Arc<dyn Clock> = Arc::new(Ticking::default());
    let faulty = Arc::new(Faulty::new(Arc::new(Model::new(Arc::clone(&clock), 4))));
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(calls(Measured::new(Arc::clone(&faulty), clock), faulty));
    });
    handle.render()
}

#[test]
fn every_call_is_counted_with_its_batch() {
    let page = scrape(|store, _| async move {
        store.ping().await.unwrap();
        store.create(vec![]).await.unwrap();
        store.settle(&[]).await.unwrap();
        store.settle(&[]).await.unwrap();
    });
    for line in [
        r#"timer_store_call_duration_seconds_count{operation="ping"} 1"#,
        r#"timer_store_call_duration_seconds_count{operation="settle"} 2"#,
        r#"timer_store_call_duration_seconds_sum{operation="settle"} 0.5"#,
        r#"timer_store_batch_size_count{operation="create"} 1"#,
        r#"timer_store_batch_size_sum{operation="settle"} 0"#,
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
    assert!(!page.contains("timer_store_errors_total{"), "{page}");
}

#[test]
fn errors_are_counted_by_kind() {
    let page = scrape(|store, faulty| async move {
        faulty.plan(Operation::Ping, Fault::NotDone);
        faulty.plan(Operation::Settle, Fault::DoneUnknown);
        store.ping().await.unwrap_err();
        store.settle(&[]).await.unwrap_err();
    });
    for line in [
        r#"timer_store_errors_total{operation="ping",kind="unavailable"} 1"#,
        r#"timer_store_errors_total{operation="settle",kind="unknown"} 1"#,
        r#"timer_store_call_duration_seconds_count{operation="ping"} 1"#,
    ] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
}
