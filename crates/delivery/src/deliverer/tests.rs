use std::sync::Mutex;

use async_trait::async_trait;
use domain::{ManualClock, Timestamp, TraceContext};

use super::*;
use crate::{Announcer, EventSender, timers};

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
        assert_eq!(deliverer().attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Failed(failure));
    }
}

/// Has only so many good answers.
struct Announcing {
    good: u32,
    asked: Mutex<Vec<(domain::TimerId, u32)>>,
}

#[async_trait]
impl Announcer for Announcing {
    async fn announce(&self, timer: &Timer, attempt: u32, _: Option<&TraceContext>) -> Result<(), Failure> {
        self.asked.lock().unwrap().push((timer.id(), attempt));
        if attempt <= self.good { Ok(()) } else { Err(Failure::new(FailureKind::Broker, "away")) }
    }
}

#[tokio::test]
async fn events_are_announced_and_nothing_else_is() {
    let announcing = Arc::new(Announcing { good: 1, asked: Mutex::default() });
    let deliverer = deliverer().with(EventSender::new(announcing.clone()));
    let timer = timers::event();
    assert_eq!(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered);
    assert_eq!(
        deliverer.attempt(&timer, 2, Prepared::default()).await.outcome,
        Outcome::Failed(Failure::new(FailureKind::Broker, "away"))
    );
    assert!(matches!(
        deliverer.attempt(&timers::nats("orders.late", ""), 1, Prepared::default()).await.outcome,
        Outcome::Failed(_)
    ));
    assert_eq!(*announcing.asked.lock().unwrap(), [(timer.id(), 1), (timer.id(), 2)]);
}

#[test]
fn only_kinds_that_have_a_sender_can_be_sent() {
    let http = KindSet::EMPTY.with(CallbackKind::Http);
    assert_eq!(deliverer().kinds(), http);
    let announcing = Arc::new(Announcing { good: 1, asked: Mutex::default() });
    assert_eq!(deliverer().with(EventSender::new(announcing)).kinds(), http.with(CallbackKind::Event));
}

#[test]
fn a_callback_that_would_never_be_sent_is_refused_by_its_sender() {
    let check = |timer: Timer| deliverer().check(&timer.definition.namespace, &timer.definition.callback);
    let refusal = check(timers::http("http://169.254.169.254/", "")).unwrap_err().to_string();
    assert!(refusal.starts_with("callback.url must not be called: "), "{refusal}");
    assert_eq!(check(timers::http("http://127.0.0.1/", "")), Ok(()));
    assert_eq!(check(timers::nats("orders.late", "")), Ok(()), "without a sender there is no rule");
}

#[test]
fn what_a_sender_prepared_is_for_no_other_sender() {
    assert_eq!(Prepared::new(7_u8).take::<u16>(), None);
    assert_eq!(Prepared::new(7_u8).take::<u8>(), Some(7));
    assert_eq!(Prepared::default().take::<u8>(), None);
}

#[test]
fn what_is_remembered_is_what_the_receiver_said_or_why_it_said_nothing() {
    use domain::AttemptLog::{Everything, Failures, Nothing};
    let timer = timers::nats("orders.late", "");
    let failed = || Outcome::Failed(Failure::new(FailureKind::Status(503), "answered 503"));
    let lost = || Outcome::Failed(Failure::new(FailureKind::Timeout, "no answer within 1s"));
    let again = || Outcome::Rescheduled { at: Timestamp::from_micros(9) };
    for (attempt_log, outcome, status, body, remembered) in [
        (Nothing, Outcome::Delivered, Some(200), "ok", None),
        (Nothing, failed(), Some(503), "out of stock", None),
        (Failures, Outcome::Delivered, Some(200), "ok", None),
        (Failures, again(), Some(200), "ok", None),
        (Failures, failed(), Some(503), "out of stock", Some(("status_5xx", Some(503), Some("out of stock")))),
        (Failures, failed(), Some(503), "", Some(("status_5xx", Some(503), Some("answered 503")))),
        (Failures, lost(), None, "", Some(("timeout", None, Some("no answer within 1s")))),
        (Everything, Outcome::Delivered, Some(204), "", Some(("delivered", Some(204), None))),
        (Everything, Outcome::Delivered, None, "", Some(("delivered", None, None))),
        (Everything, again(), Some(200), "later", Some(("rescheduled", Some(200), Some("later")))),
        (Everything, lost(), None, "", Some(("timeout", None, Some("no answer within 1s")))),
    ] {
        let call = Call {
            timer: &timer,
            attempt: 3,
            at: Timestamp::from_micros(7),
            signing: None,
            trace: None,
            attempt_log,
            answer_bytes_max: 0,
        };
        let answer = Answer { outcome, status, headers: Vec::new(), body: body.as_bytes().to_vec() };
        let expected = remembered.map(|(outcome, status, detail)| Attempt {
            number: 3,
            started_at: Timestamp::from_micros(7),
            took: Span::from_millis(250),
            outcome: outcome.to_owned(),
            status,
            detail: detail.map(str::to_owned),
            node: None,
            answer: None,
        });
        assert_eq!(record(&answer, &call, Duration::from_millis(250)), expected, "{attempt_log:?} {answer:?}");
        let event = Call { timer: &timers::event(), ..call };
        assert_eq!(record(&answer, &event, Duration::from_millis(250)), None, "an event tells nothing new");
    }
}
