use std::sync::Arc;

use domain::{ManualClock, Span};
use serde_json::{Value, json};
use store::Operation;
use store_testing::{Fault, Faulty, Model};

use super::*;
use crate::rig::{NOW, Rig, request};

fn rig(health: Vec<HealthItem>) -> (Rig, Arc<Faulty<Model>>) {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
    (Rig::over(store.clone(), clock, health), store)
}

fn item(name: &'static str, value: Value, well: bool) -> HealthItem {
    HealthItem { name, read: Arc::new(move || Reading { value: value.clone(), well }) }
}

#[tokio::test]
async fn a_service_that_works_is_up_without_a_key() {
    let (rig, _) = rig(vec![item("scheduler", json!({"lag_ms": 3}), true)]);
    let mut open = request("GET", "/healthz", "");
    open.headers_mut().clear();
    let reply = rig.send(open).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({"code": 0, "message": "healthy", "data": {
            "status": "up", "database": "connected", "timestamp": "2030-01-01T00:00:00Z", "scheduler": {"lag_ms": 3},
        }})
    );
}

#[tokio::test]
async fn a_store_that_is_away_is_told() {
    let (rig, store) = rig(Vec::new());
    store.set_down(true);
    let reply = rig.get("/healthz").await;
    assert_eq!(reply.status, 500);
    assert_eq!(
        reply.json(),
        json!({"code": 1, "message": "database connection failed", "data": {
            "status": "degraded", "database": "disconnected", "timestamp": "2030-01-01T00:00:00Z",
        }})
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_does_not_hold_up_the_answer() {
    let (rig, store) = rig(Vec::new());
    store.plan(Operation::Ping, Fault::Late(Span::from_secs(3600)));
    let began = tokio::time::Instant::now();
    assert_eq!(rig.get("/healthz").await.data("database"), "disconnected");
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
}

#[tokio::test]
async fn something_else_that_is_not_well_is_told_by_name() {
    let (rig, _) = rig(vec![item("egress", json!("open"), true), item("scheduler", json!("stuck"), false)]);
    let reply = rig.get("/healthz").await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (500, "scheduler is not well"));
    assert_eq!((reply.data("status"), reply.data("database")), (json!("degraded"), json!("connected")));
    assert_eq!(reply.data("scheduler"), json!("stuck"));
}
