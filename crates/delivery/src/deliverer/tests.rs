use std::sync::Mutex;

use async_trait::async_trait;
use domain::{ManualClock, Timestamp};

use super::*;
use crate::timers;

fn deliverer() -> Deliverer {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
    let config = Config { version: "1.2.3".to_owned(), ..Config::default() };
    Deliverer::with_outside(config, clock, Lookups::new(SystemNames), rustls::RootCertStore::empty()).unwrap()
}

#[tokio::test]
async fn what_is_not_configured_names_the_setting() {
    for (timer, message) in [
        (timers::nats("orders.late", ""), "no NATS server is configured: set NATS_URL"),
        (timers::event(), "no broker is configured: set TIMER_BROKER"),
    ] {
        let failure = Failure::new(FailureKind::NotConfigured, message);
        assert_eq!(deliverer().attempt(&timer, 1).await, Outcome::Failed(failure));
    }
}

/// Has only so many good answers.
struct Announcing {
    good: u32,
    asked: Mutex<Vec<(domain::TimerId, u32)>>,
}

#[async_trait]
impl Announcer for Announcing {
    async fn announce(&self, timer: &Timer, attempt: u32) -> Result<(), Failure> {
        self.asked.lock().unwrap().push((timer.id(), attempt));
        if attempt <= self.good { Ok(()) } else { Err(Failure::new(FailureKind::Broker, "away")) }
    }
}

#[tokio::test]
async fn events_are_announced_and_nothing_else_is() {
    let announcing = Arc::new(Announcing { good: 1, asked: Mutex::default() });
    let deliverer = deliverer().with_events(announcing.clone());
    let timer = timers::event();
    assert_eq!(deliverer.attempt(&timer, 1).await, Outcome::Delivered);
    assert_eq!(deliverer.attempt(&timer, 2).await, Outcome::Failed(Failure::new(FailureKind::Broker, "away")));
    assert!(matches!(deliverer.attempt(&timers::nats("orders.late", ""), 1).await, Outcome::Failed(_)));
    assert_eq!(*announcing.asked.lock().unwrap(), [(timer.id(), 1), (timer.id(), 2)]);
}
