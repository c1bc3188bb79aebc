//! Timers that are changed or asked for again while they wait: for their time, for a permit, or for a retry.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{
    Answer, Backend, Client, Receiver, Reply, Service, beside_others, callback_to, for_each_store, instant, micros, now,
    tolerated, wait_for_wall,
};

const SOON: Duration = Duration::from_secs(15);
/// How many timers there are of each kind: several times the permits that a destination has.
const GROUP: usize = 6;
const PERMITS: (&str, &str) = ("IN_FLIGHT_PER_DESTINATION_MAX", "2");
/// Long enough for the timers behind it to be changed while they wait for a permit, on a busy machine, too.
const LONG_CALL: Duration = Duration::from_secs(4);
/// Long enough for a timer to be changed before it is due.
const BEFORE_ITS_TIME: &str = "4s";

for_each_store!(mariadb in soak:
    a_timer_moved_to_another_host_before_its_time_fires_once_and_there,
    a_timer_moved_to_another_host_while_it_waits_for_a_permit_fires_once_and_there,
    a_corrected_callback_is_called_at_the_time_of_its_retry,
    a_corrected_callback_is_not_overdue_because_it_is_a_retry,
    a_repeated_create_finds_its_timer_just_before_and_after_it_is_due,
    a_repeated_create_finds_its_timer_although_its_time_is_nearer_than_may_be_asked_for,
);

/// Two receivers, and which timers each of them is to get, once each.
struct Hosts {
    old: Receiver,
    new: Receiver,
    stay: HashSet<String>,
    moved: HashSet<String>,
}

impl Hosts {
    async fn register(&self, client: &Client, delay: &str) -> HashSet<String> {
        let timer = json!({"delay": delay, "callback": callback_to(&self.old.url("/"), &json!(1))});
        join_all((0..GROUP).map(async |_| client.create(&timer).await)).await.into_iter().collect()
    }

    /// Another receiver, but no other time.
    async fn change(&self, client: &Client, ids: &HashSet<String>) {
        let patch = json!({"callback": callback_to(&self.new.url("/"), &json!(1))});
        let answers = join_all(ids.iter().map(async |id| client.try_update(id, &patch).await.expect("an answer"))).await;
        answers.iter().for_each(|answer| assert_eq!(answer.status, 200, "{}", answer.text));
    }

    async fn check(&self, client: &Client) {
        self.old.wait_for(self.stay.len(), SOON).await;
        self.new.wait_for(self.moved.len(), SOON).await;
        client.wait_until_finished(SOON).await;
        for (receiver, expected) in [(&self.old, &self.stay), (&self.new, &self.moved)] {
            let calls = receiver.calls();
            let called: HashSet<String> = calls.iter().map(|call| call.timer_id().to_owned()).collect();
            assert_eq!(&called, expected);
            assert_eq!(calls.len(), expected.len(), "one was called twice");
        }
    }
}

async fn a_timer_moved_to_another_host_before_its_time_fires_once_and_there(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), PERMITS]).await;
    let client = service.client();
    let mut hosts = Hosts { old: Receiver::start(), new: Receiver::start(), stay: HashSet::new(), moved: HashSet::new() };
    // More than once: a permit that is lost each time would be missing in the end.
    for _ in 0..2 {
        let moved = hosts.register(&client, BEFORE_ITS_TIME).await;
        hosts.change(&client, &moved).await;
        hosts.moved.extend(moved);
        let stay = hosts.register(&client, BEFORE_ITS_TIME).await;
        hosts.stay.extend(stay);
        hosts.check(&client).await;
    }
    service.stop().await;
}

async fn a_timer_moved_to_another_host_while_it_waits_for_a_permit_fires_once_and_there(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), PERMITS]).await;
    let client = service.client();
    let old = Receiver::replying(|call| if call.path == "/long" { Reply::OkAfter(LONG_CALL) } else { Reply::Status(200) });
    let mut hosts = Hosts { old, new: Receiver::start(), stay: HashSet::new(), moved: HashSet::new() };
    for _ in 0..2 {
        let calls = hosts.old.count();
        let long = json!({"delay": "1ms", "callback": callback_to(&hosts.old.url("/long"), &json!(1))});
        hosts.stay.extend([client.create(&long).await, client.create(&long).await]);
        hosts.old.wait_for(calls + 2, SOON).await;
        // All permits are taken, so these are overdue when they are changed.
        let moved = hosts.register(&client, "1ms").await;
        wait_for_wall(now() + 100_000).await;
        hosts.change(&client, &moved).await;
        hosts.moved.extend(moved);
        let stay = hosts.register(&client, "1ms").await;
        hosts.stay.extend(stay);
        hosts.check(&client).await;
    }
    service.stop().await;
}

async fn a_corrected_callback_is_called_at_the_time_of_its_retry(backend: Backend) {
    correct_while_waiting_for_a_retry(backend, &[("MIN_DELAY", "0s")]).await;
}

async fn a_corrected_callback_is_not_overdue_because_it_is_a_retry(backend: Backend) {
    correct_while_waiting_for_a_retry(backend, &[("MIN_DELAY", "0s"), ("OVERDUE_WINDOW", "1s")]).await;
}

async fn correct_while_waiting_for_a_retry(backend: Backend, settings: &[(&str, &str)]) {
    /// Three seconds, more or less a tenth of chance.
    const RETRY_MICROS: std::ops::Range<i64> = 2_700_000..3_300_000;
    const LATE_MICROS_MAX: i64 = 1_000_000;
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.path == "/wrong" { 500 } else { 200 }));
    let mut service = Service::start_with(&backend, settings).await;
    let client = service.client();
    let policy = json!({"max_retries": 3, "initial_interval": "3s"});
    let wrong = callback_to(&receiver.url("/wrong"), &json!(1));
    let id = client.create(&json!({"delay": "1ms", "retry_policy": policy, "callback": wrong})).await;
    receiver.wait_for(1, SOON).await;
    crate::rig::eventually("it waits for its retry", SOON, async || {
        let timer = client.timer(&id).await;
        (timer["status"] == "pending" && timer["attempt"] == 1).then_some(())
    })
    .await;

    let right = json!({"callback": callback_to(&receiver.url("/right"), &json!(1))});
    let answer = client.try_update(&id, &right).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text);
    let timer = client.wait_for_status(&id, "completed").await;

    let calls = receiver.calls();
    assert_eq!(calls.iter().map(|call| call.path.as_str()).collect::<Vec<_>>(), ["/wrong", "/right"]);
    let waited = calls[1].arrived - calls[0].arrived;
    println!("{}: a corrected callback was called {:.2} s after the wrong one", backend.name(), waited as f64 / 1e6);
    assert!((RETRY_MICROS.start..RETRY_MICROS.end + tolerated(LATE_MICROS_MAX)).contains(&waited), "{waited} µs");
    assert_eq!(timer["last_error"], Value::Null, "{timer}");
    service.stop().await;
}

/// The same request around the instant at which its timer is due, before and while it is called and long after.
async fn repeat_around_the_due_time(client: &Client, receiver: &Receiver, timers: &[Value], offsets_millis: &[i64]) {
    let first = join_all(timers.iter().map(async |timer| client.post(&timer.to_string()).await)).await;
    first.iter().for_each(|answer| assert_eq!(answer.status, 201, "{}", answer.text));
    let ids: HashSet<String> = first.iter().map(Answer::id).collect();
    assert_eq!(ids.len(), timers.len());
    let repeat = async |(timer, first): (&Value, &Answer)| {
        let due = micros(first.json()["data"]["execute_at"].as_str().expect("a due time"));
        for offset in offsets_millis {
            wait_for_wall(due + offset * 1_000).await;
            let again = client.post(&timer.to_string()).await;
            let met = (again.status, again.message(), again.id());
            assert_eq!(met, (200, "timer already exists".to_owned(), first.id()), "{offset} ms after: {}", again.text);
        }
    };
    join_all(timers.iter().zip(&first).map(repeat)).await;
    client.wait_until_finished(SOON).await;
    let mut calls: HashMap<String, usize> = HashMap::new();
    for call in receiver.calls() {
        *calls.entry(call.timer_id().to_owned()).or_default() += 1;
    }
    assert_eq!(calls, ids.into_iter().map(|id| (id, 1)).collect(), "each is called once");
}

async fn a_repeated_create_finds_its_timer_just_before_and_after_it_is_due(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(Duration::from_millis(100)));
    let mut service = Service::start(&backend).await;
    let timers: Vec<Value> = (0..20)
        .map(|n| {
            let key = format!("order-{n}");
            json!({"delay": "1500ms", "key": key, "callback": callback_to(&receiver.url("/once"), &json!(n))})
        })
        .collect();
    let offsets = [-500, -50, -20, -5, -1, 0, 1, 5, 20, 50, 150, 500];
    repeat_around_the_due_time(&service.client(), &receiver, &timers, &offsets).await;
    service.stop().await;
}

async fn a_repeated_create_finds_its_timer_although_its_time_is_nearer_than_may_be_asked_for(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let at = instant(now() + 8_000_000);
    let timers: Vec<Value> = (0..5)
        .map(|n| {
            let key = format!("order-{n}");
            json!({"execute_at": at, "key": key, "callback": callback_to(&receiver.url("/once"), &json!(n))})
        })
        .collect();
    repeat_around_the_due_time(&service.client(), &receiver, &timers, &[-4_000, -1_000, -10, 10, 1_000]).await;
    service.stop().await;
}
