//! A command on the broker leads to its event at its time.

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};
use throwaway::Nats;

use crate::rig::{
    Backend, Bus, Client, Event, Service, Witness, beside_others, blocking, for_each_store, instant, micros, now, schedule_timer,
    tolerated, with_commands,
};

const SOON: Duration = Duration::from_secs(10);
const TENANT: &str = "acme";
/// Late for an idle machine; other tests may be at work, too.
const LATENESS_SECONDS_MAX: f64 = 3.0;

for_each_store!(
    a_command_leads_to_its_event_at_its_time,
    a_timer_of_a_command_can_be_seen_and_canceled_over_http,
    the_same_command_again_moves_the_timer_until_it_is_due,
    a_due_time_that_has_passed_is_due_at_once,
    commands_that_came_while_no_consumer_was_there_are_carried_out,
);

/// A broker of its own, whose streams have fixed names, and a service that takes commands.
struct Stage {
    nats: Nats,
    service: Service,
    bus: Bus,
    events: Witness,
}

impl Stage {
    async fn open(backend: &Backend) -> Self {
        Self::open_with(backend, &[]).await
    }

    async fn open_with(backend: &Backend, settings: &[(&str, &str)]) -> Self {
        let nats = blocking(Nats::start);
        let service = Service::start_with(backend, &[&with_commands(&nats.url()), settings].concat()).await;
        service.client().wait_for_health("broker", "connected").await;
        let bus = Bus::to_commands(&nats.url()).await;
        let events = bus.events();
        Self { nats, service, bus, events }
    }

    /// All events up to one that was commanded just now and is due at once. What should not come would have come before.
    async fn events_until_marker(&mut self, marker: &str) -> Vec<Event> {
        self.bus.schedule("marker", marker, now()).await;
        let mut events = self.events.wait_for_event_of(marker, SOON).await;
        events.retain(|event| event.tenant != "marker");
        events
    }
}

async fn a_command_leads_to_its_event_at_its_time(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend).await;
    let at = now() + 800_000;
    let mut whole = schedule_timer(TENANT, "whole", at);
    whole["correlationId"] = json!("req-9");
    whole["traceparent"] = json!("00-unknown fields mean nothing");
    let bare = json!({"tenantId": "Tenant_2:b", "serviceCallId": "bare / é \"1\"", "dueAt": instant(at)});
    let with_offset = json!({"tenantId": TENANT, "serviceCallId": "offset", "dueAt": in_tokyo(at)});
    for command in [&whole, &bare, &with_offset] {
        stage.bus.command(command).await.expect("an acknowledgement");
    }
    let events = stage.events.wait_for_events(3, SOON).await;

    let of = |call: &str| events.iter().find(|event| event.call == call).unwrap_or_else(|| panic!("{call} in {events:?}"));
    assert_eq!((of("whole").tenant.as_str(), of("whole").correlation.as_deref()), (TENANT, Some("req-9")));
    assert_eq!((of("bare / é \"1\"").tenant.as_str(), of("bare / é \"1\"").correlation.as_deref()), ("Tenant_2:b", None));
    assert_eq!((of("offset").tenant.as_str(), of("offset").correlation.as_deref()), (TENANT, None));
    for event in &events {
        assert!(event.reached_at >= at && event.at >= at, "early: {event:?}");
        let late = (event.at - at) as f64 / 1e6;
        assert!(late < tolerated(LATENESS_SECONDS_MAX), "{late} s late: {event:?}");
        assert!((event.at - event.reached_at).abs() < tolerated(3_000_000), "{event:?}");
    }
    let ids: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let message_ids: HashSet<&str> = events.iter().map(|event| event.message_id.as_str()).collect();
    assert_eq!((ids.len(), message_ids.len()), (3, 3), "{events:?}");
    assert_eq!(stage.events_until_marker("end").await.len(), 3);
    stage.service.stop().await;
}

/// Several services on one database share one consumer: each command goes to one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_services_on_one_database_share_the_commands() {
    const COMMANDS_SENT: usize = 1_000;
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let mut stage = Stage::open(&backend).await;
    let mut second = Service::start_with_commands(&backend, &stage.nats.url()).await;
    let received = async |client: Client| client.metric("timer_commands_received_total").await.unwrap_or_default();
    let mut sent = 0;
    // Until both have had some: who asks first gets many.
    while sent == 0 || received(second.client()).await == 0.0 || received(stage.service.client()).await == 0.0 {
        assert!(sent < 20 * COMMANDS_SENT, "one of them gets nothing");
        let send = async |n: usize| stage.bus.schedule(TENANT, &format!("shared {n}"), now()).await;
        futures_util::future::join_all((sent..sent + COMMANDS_SENT).map(send)).await;
        sent += COMMANDS_SENT;
    }
    let events = stage.events.wait_for_events(sent, Duration::from_secs(60)).await;
    let calls: HashSet<&str> = events.iter().map(|event| event.call.as_str()).collect();
    assert_eq!((calls.len(), events.len()), (sent, sent));
    second.stop().await;
    assert_eq!(stage.events_until_marker("end").await.len(), sent);
    stage.service.stop().await;
}

/// The same instant with the offset of another place.
fn in_tokyo(at: i64) -> String {
    let there = instant(at + 9 * 3600 * 1_000_000);
    there.replace('Z', "+09:00")
}

async fn a_timer_of_a_command_can_be_seen_and_canceled_over_http(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend).await;
    let client = stage.service.client();
    let at = now() + 5_000_000;
    let mut canceled = schedule_timer(TENANT, "canceled", at);
    canceled["correlationId"] = json!("req-9");
    stage.bus.command(&canceled).await.expect("an acknowledgement");
    stage.bus.schedule(TENANT, "kept", at).await;

    let shown = timer_of(&client, TENANT, "canceled").await;
    for (field, value) in [
        ("namespace", json!(TENANT)),
        ("key", json!("canceled")),
        ("status", json!("pending")),
        ("callback_type", json!("event")),
        ("callback_config", json!({"type": "event"})),
        ("correlation_id", json!("req-9")),
        ("attempt", json!(0)),
    ] {
        assert_eq!(shown[field], value, "{field} in {shown}");
    }
    assert_eq!(micros(shown["execute_at"].as_str().expect("a due time")), at);
    let id = shown["id"].as_str().expect("an id");
    let answer = client.try_cancel(id).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(now() < at, "canceled too late to mean anything");

    stage.events.wait_for_event_of("kept", SOON).await;
    let events = stage.events_until_marker("end").await;
    assert_eq!(events.iter().map(|event| event.call.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(client.timer(id).await["status"], "canceled");
    let kept = timer_of(&client, TENANT, "kept").await;
    let kept = client.wait_for_status(kept["id"].as_str().expect("an id"), "completed").await;
    assert_eq!((&kept["attempt"], &kept["last_error"]), (&json!(1), &Value::Null), "{kept}");
    stage.service.stop().await;
}

/// Waits until the command was carried out; `data` of `GET /timers/{id}`.
async fn timer_of(client: &Client, tenant: &str, call: &str) -> Value {
    let id = crate::rig::eventually(&format!("the timer of {call}"), SOON, async || {
        let list = client.get(&format!("/timers?namespace={tenant}&limit=200")).await.json();
        let timers = list["data"]["timers"].as_array().cloned().unwrap_or_default();
        timers.iter().find(|timer| timer["key"] == call).map(|timer| timer["id"].as_str().expect("an id").to_owned())
    })
    .await;
    client.timer(&id).await
}

async fn the_same_command_again_moves_the_timer_until_it_is_due(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend).await;
    let begun = now();
    let (early, late, far) = (begun + 3_000_000, begun + 4_500_000, begun + 3_600_000_000);
    for (call, first, second) in [("sooner", far, early), ("later", early, late)] {
        stage.bus.schedule(TENANT, call, first).await;
        // In one go with the first, or in another batch: both must do.
        stage.bus.schedule(TENANT, call, second).await;
    }
    assert!(now() < early, "moved too late to mean anything");
    stage.events.wait_for_event_of("sooner", SOON).await;
    let events = stage.events.wait_for_event_of("later", SOON).await;
    for (call, due) in [("sooner", early), ("later", late)] {
        let of_call: Vec<&Event> = events.iter().filter(|event| event.call == call).collect();
        assert_eq!(of_call.len(), 1, "{events:?}");
        assert!(of_call[0].at >= due, "{call} came at its old time: {events:?}");
    }

    // Now they are over, and nothing brings them back.
    let client = stage.service.client();
    client.wait_until_finished(SOON).await;
    for at in [now(), now() + 200_000, begun - 1_000_000, early, late] {
        stage.bus.schedule(TENANT, "sooner", at).await;
        stage.bus.schedule(TENANT, "later", at).await;
    }
    stage.bus.schedule(TENANT, "after all", now() + 400_000).await;
    stage.events.wait_for_event_of("after all", SOON).await;
    let events = stage.events_until_marker("end").await;
    assert_eq!(events.len(), 3, "{events:?}");
    for call in ["sooner", "later"] {
        let timer = timer_of(&client, TENANT, call).await;
        assert_eq!((&timer["status"], &timer["attempt"]), (&json!("completed"), &json!(1)), "{timer}");
    }
    stage.service.stop().await;
}

async fn a_due_time_that_has_passed_is_due_at_once(backend: Backend) {
    let _machine = beside_others().await;
    // Which is for callbacks: a command may have waited.
    let mut stage = Stage::open_with(&backend, &[("OVERDUE_WINDOW", "1s")]).await;
    let sent = now();
    for (call, at) in [("a moment", sent - 1), ("a day", sent - 86_400_000_000), ("1970", 0)] {
        stage.bus.schedule(TENANT, call, at).await;
    }
    let events = stage.events.wait_for_events(3, SOON).await;
    for event in events {
        let late = (event.at - sent) as f64 / 1e6;
        assert!(event.reached_at >= sent && late < tolerated(LATENESS_SECONDS_MAX), "{late} s: {event:?}");
    }
    assert_eq!(stage.events_until_marker("end").await.len(), 3);
    stage.service.stop().await;
}

async fn commands_that_came_while_no_consumer_was_there_are_carried_out(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend).await;
    stage.service.stop().await;
    let at = now() + 60_000_000;
    for n in 0..100 {
        stage.bus.schedule(TENANT, &format!("due {n}"), now()).await;
        stage.bus.schedule(TENANT, &format!("not due {n}"), at).await;
    }
    // The last command counts, also when no service has read the first.
    stage.bus.schedule(TENANT, "due 100", at).await;
    stage.bus.schedule(TENANT, "due 100", now()).await;
    stage.service.start_again().await;
    let client = stage.service.client();
    let events = stage.events.wait_for_events(101, SOON).await;
    assert!(events.iter().all(|event| event.call.starts_with("due ")), "{events:?}");
    crate::rig::eventually("all timers are there", SOON, async || (client.count("pending").await == 100).then_some(())).await;
    assert_eq!(stage.events_until_marker("end").await.len(), 101);

    // The broker too can go away between a command and its time.
    blocking(|| stage.nats.stop_immediate());
    client.wait_for_health("broker", "disconnected").await;
    blocking(|| stage.nats.start_again());
    client.wait_for_health("broker", "connected").await;
    assert_eq!(stage.events_until_marker("after all").await.len(), 101);
    stage.service.stop().await;
}
