use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use commands::Target;
use domain::{Callback, Key, Namespace, RequestedTime, Span, Status, Timestamp, TraceContext};
use store::Operation;
use store_testing::Fault;
use tokio::{task::JoinHandle, time::Instant};

use super::*;
use crate::{
    Event,
    rig::{NOW, Rig, command},
};

const SOON: Span = Span::from_secs(60);

/// A consumer that runs in a task beside the test.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(consumer: CommandConsumer) -> Self {
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(consumer.run(stop.clone())), stop }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_one_commit_and_is_acknowledged_command_by_command() {
    let rig = Rig::new();
    for n in 0..600 {
        rig.broker.send(command(&n.to_string(), SOON));
    }
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.done().len() == 600).await;
    assert_eq!((rig.store.calls(Operation::Create), rig.timers().await), (2, 600));
    assert_eq!(rig.timer("17").await.unwrap().execute_at, NOW.saturating_add(SOON));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_is_acknowledged_only_after_the_commit() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::Late(Span::from_secs(3)));
    rig.broker.send(command("a", SOON));
    let started = Instant::now();
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.under_way() == 1).await;
    assert!(rig.broker.done().is_empty());
    rig.broker.until(|broker| !broker.done().is_empty()).await;
    assert_eq!((started.elapsed(), rig.timers().await), (Duration::from_secs(3), 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_puts_commands_off_until_it_is_back() {
    let rig = Rig::new();
    rig.store.set_down(true);
    for n in 0..100 {
        rig.broker.send(command(&n.to_string(), SOON));
    }
    let running = Running::start(rig.consumer());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(rig.broker.done().is_empty() && rig.broker.dead().is_empty());
    let tries = rig.store.calls(Operation::Create);
    assert!((5..30).contains(&tries), "{tries} tries in a minute");
    rig.store.set_down(false);
    let back = Instant::now();
    rig.broker.until(|broker| broker.done().len() == 100).await;
    assert!(back.elapsed() < Duration::from_secs(40), "{:?}", back.elapsed());
    assert_eq!(rig.timers().await, 100);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_store_is_no_lost_command() {
    for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown, Fault::NotDone] {
        let rig = Rig::new();
        rig.store.plan(Operation::Create, fault);
        rig.broker.send(command("a", SOON));
        rig.broker.send(command("b", SOON));
        let running = Running::start(rig.consumer());
        rig.broker.until(|broker| broker.done().len() == 2).await;
        assert_eq!(rig.timers().await, 2, "{fault:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_never_work_is_put_aside_with_the_reason_and_delays_no_other_command() {
    let rig = Rig::new();
    rig.broker.set_dead_letter_time(Duration::from_secs(3600));
    let refused = [
        ("nonsense", "message must be valid JSON"),
        (r#"{"tenantId":"acme","serviceCallId":"x"}"#, "dueAt is required"),
        (r#"{"type":"CancelTimer","payload":{}}"#, "type must be ScheduleTimer"),
    ];
    for (n, (body, _)) in refused.into_iter().enumerate() {
        rig.broker.send(command(&n.to_string(), SOON));
        rig.broker.send(body);
    }
    let too_far = command("far", Span::from_secs(7200));
    rig.broker.send(too_far.clone());
    let started = Instant::now();
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.done().len() == 3).await;
    rig.broker.send(command("behind", SOON));
    rig.broker.until(|broker| broker.done().len() == 4).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    rig.broker.until(|broker| broker.dead().len() == 4).await;
    let dead: Vec<_> = rig.broker.dead().into_iter().map(|letter| (letter.body, letter.reason)).collect();
    for (body, reason) in refused.into_iter().chain([(too_far.as_str(), "dueAt must not be more than 1h ahead")]) {
        assert!(dead.contains(&(body.to_owned().into(), reason.to_owned())), "{body}: {dead:?}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_for_the_key_of_another_kind_of_timer_is_put_aside() {
    let rig = Rig::new();
    let callback = Callback::from_json(r#"{"type":"http","url":"http://a/"}"#).unwrap();
    let taken = NewTimerRequest {
        namespace: Namespace::parse("acme").unwrap(),
        key: Some(Key::parse("taken").unwrap()),
        ..NewTimerRequest::new(RequestedTime::After(SOON), Target::Callback(callback))
    };
    rig.commands.create(taken).await.unwrap();
    let before = rig.timer("taken").await;
    rig.broker.send(command("taken", Span::from_secs(7)));
    rig.broker.send(command("free", SOON));
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.done().len() == 1 && broker.dead().len() == 1).await;
    assert_eq!(rig.broker.dead()[0].reason, "serviceCallId must not be the key of a timer of another kind");
    assert_eq!(rig.timer("taken").await, before);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_that_a_callback_has_published_is_put_aside() {
    let rig = Rig::new();
    rig.broker.send(format!("callback {}", command("planted", SOON)));
    rig.broker.send(command("free", SOON));
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.done().len() == 1 && broker.dead().len() == 1).await;
    assert_eq!(rig.broker.dead()[0].reason, "message must not be a callback of this service");
    assert_eq!(rig.timer("planted").await, None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_put_aside_comes_again() {
    let rig = Rig::new();
    rig.broker.set_cannot_dead_letter(true);
    rig.broker.send("nonsense");
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.deliveries() == 1 && broker.waiting() == 1).await;
    assert!(rig.broker.dead().is_empty());
    rig.broker.set_cannot_dead_letter(false);
    rig.broker.until(|broker| broker.dead().len() == 1).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_so_much_is_on_its_way_aside_at_once() {
    let rig = Rig::new();
    rig.broker.set_dead_letter_time(Duration::from_millis(500));
    let large = "x".repeat(1 << 20);
    for _ in 0..40 {
        rig.broker.send(large.clone());
    }
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.under_way() == 0 && !broker.dead().is_empty()).await;
    let first = rig.broker.dead().len();
    assert!((20..32).contains(&first), "{first} at once");
    rig.broker.until(|broker| broker.dead().len() == 40).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_acknowledgement_is_a_repetition_that_changes_nothing() {
    let rig = Rig::new();
    rig.broker.lose_verdicts(1);
    rig.broker.send(command("a", SOON));
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.deliveries() == 1 && broker.waiting() == 1).await;
    let first = rig.timer("a").await.unwrap();
    rig.broker.until(|broker| broker.done().len() == 1).await;
    let second = rig.timer("a").await.unwrap();
    assert_eq!((first.execute_at, first.webhook_id()), (second.execute_at, second.webhook_id()));
    assert_eq!((rig.timers().await, rig.store.calls(Operation::Create)), (1, 2));
    running.stop().await;
}

#[tokio::test]
async fn a_repeated_command_moves_a_waiting_timer_and_leaves_a_finished_one_alone() {
    let rig = Rig::new();
    let mut consumer = rig.consumer();
    let step = async |consumer: &mut CommandConsumer, after: Span| {
        rig.broker.send(command("a", after));
        let batch = rig.broker.receive(10).await.unwrap();
        consumer.handle(batch).await
    };
    let scheduled = step(&mut consumer, SOON).await;
    assert_eq!(scheduled, Handled { scheduled: 1, ..Handled::default() });
    let moved = step(&mut consumer, Span::from_secs(90)).await;
    assert_eq!(moved, Handled { moved: 1, ..Handled::default() });
    assert_eq!(rig.timer("a").await.unwrap().execute_at, NOW.saturating_add(Span::from_secs(90)));
    let id = rig.timer("a").await.unwrap().id();
    rig.commands.cancel(id, None).await.unwrap();
    let unchanged = step(&mut consumer, SOON).await;
    assert_eq!(unchanged, Handled { unchanged: 1, ..Handled::default() });
    assert_eq!(rig.timer("a").await.unwrap().status, Status::Canceled);
}

#[tokio::test]
async fn a_command_that_waited_until_after_its_time_is_due_at_once() {
    let rig = Rig::new();
    rig.broker.send(r#"{"tenantId":"acme","serviceCallId":"late","dueAt":"2001-09-09T01:46:40Z"}"#);
    let batch = rig.broker.receive(10).await.unwrap();
    rig.consumer().handle(batch).await;
    let timer = rig.timer("late").await.unwrap();
    assert_eq!((timer.status, timer.execute_at < NOW), (Status::Pending, true));
    assert!(timer.execute_at > Timestamp::from_micros(0));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_row_does_not_hold_up_its_neighbours() {
    let rig = Rig::new();
    for key in ["a", "bad", "c"] {
        rig.broker.send(command(key, SOON));
    }
    let batch = rig.broker.receive(10).await.unwrap();
    // The store fails on the whole batch, then on the second command alone.
    rig.store.plan(Operation::Create, Fault::Corrupt);
    rig.store.plan_none(Operation::Create);
    rig.store.plan(Operation::Create, Fault::Corrupt);
    let handled = rig.consumer().handle(batch).await;
    assert_eq!(handled, Handled { scheduled: 2, later: 1, ..Handled::default() });
    assert_eq!((rig.broker.done().len(), rig.broker.waiting()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_away_is_waited_for() {
    let rig = Rig::new();
    rig.broker.set_away(true);
    let running = Running::start(rig.consumer());
    tokio::time::sleep(Duration::from_secs(60)).await;
    rig.broker.send(command("a", SOON));
    rig.broker.set_away(false);
    let back = Instant::now();
    rig.broker.until(|broker| broker.done().len() == 1).await;
    assert!(back.elapsed() <= Duration::from_secs(5), "{:?}", back.elapsed());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_stops_finishes_its_batch_and_gives_back_the_rest() {
    let rig = Rig::new();
    rig.store.plan(Operation::Create, Fault::Late(Span::from_secs(3)));
    rig.broker.send(command("a", SOON));
    rig.broker.send("nonsense");
    rig.broker.set_dead_letter_time(Duration::from_secs(2));
    let running = Running::start(rig.consumer());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.broker.under_way(), 2);
    running.stop().await;
    assert_eq!((rig.broker.done().len(), rig.broker.dead().len()), (1, 1));
    assert_eq!((rig.broker.under_way(), rig.broker.waiting(), rig.broker.times_given_back()), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_stops_in_time_whatever_the_broker_does() {
    let rig = Rig::new();
    rig.broker.send("nonsense");
    rig.broker.set_dead_letter_time(Duration::from_secs(3600));
    let running = Running::start(rig.consumer());
    rig.broker.until(|broker| broker.under_way() == 1).await;
    let stopped = Instant::now();
    running.stop().await;
    assert_eq!(stopped.elapsed(), STOP_TIME_MAX);
    assert_eq!((rig.broker.under_way(), rig.broker.waiting()), (0, 1));
}

/// A broker whose only command cannot be settled.
#[derive(Default)]
struct Panicking {
    is_sent: AtomicBool,
}

struct Grenade;

#[async_trait]
impl Broker for Panicking {
    async fn receive(&self, _: usize) -> Result<Vec<Box<dyn Received>>, BrokerError> {
        if self.is_sent.swap(true, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(vec![Box::new(Grenade)])
    }

    async fn give_back(&self) -> Result<(), BrokerError> {
        Ok(())
    }

    async fn publish(&self, _: Event) -> Result<(), BrokerError> {
        Ok(())
    }
}

#[async_trait]
impl Received for Grenade {
    fn body(&self) -> &[u8] {
        b"nonsense"
    }

    fn is_callback(&self) -> bool {
        false
    }

    fn trace(&self) -> Option<TraceContext> {
        None
    }

    fn deliveries(&self) -> u32 {
        1
    }

    async fn settle(self: Box<Self>, _: Verdict) -> Result<(), BrokerError> {
        panic!("bang");
    }
}

#[tokio::test]
async fn a_panic_is_never_swallowed() {
    let consumer = CommandConsumer::new(Arc::new(Panicking::default()), Rig::new().commands);
    let ended = tokio::spawn(consumer.run(CancellationToken::new())).await;
    assert!(ended.unwrap_err().is_panic());
}
