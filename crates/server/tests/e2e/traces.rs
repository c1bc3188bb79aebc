//! Traces: a request, the firing that follows from it and the call of the receiver belong together, and logs name them.

use std::time::Duration;

use serde_json::{Value, json};
use throwaway::Nats;

use crate::rig::{
    Backend, Bus, Client, Collector, Receiver, Reply, Service, beside_others, blocking, callback_to, now, schedule_timer, told_to,
};

const SOON: Duration = Duration::from_secs(10);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const STATE: &str = "vendor=1";

fn parent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

async fn create_traced(client: &Client, timer: &Value) -> String {
    let request = client.request("POST", "/timers").header("x-api-key", client.key()).header("content-type", "application/json");
    let request = request.header("traceparent", parent()).header("tracestate", STATE);
    let created = client.send_raw(request, timer.to_string()).await.expect("an answer");
    assert_eq!(created.status, 201, "{}", created.text);
    created.id()
}

/// The settings of a service for quick timers that sends its spans without delay.
fn traced(collector: &str) -> [(&'static str, &str); 5] {
    [
        ("MIN_DELAY", "0s"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("LOG_FORMAT", "json"),
        ("RUST_LOG", "info,engine=debug"),
    ]
}

/// Trace and span of a `traceparent`.
fn ids(traceparent: &str) -> (String, String) {
    let parts: Vec<&str> = traceparent.split('-').collect();
    let [_, trace, span, _] = parts[..] else { panic!("no traceparent: {traceparent:?}") };
    (trace.to_owned(), span.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_is_a_trace_of_its_own_that_links_to_the_creation() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let collector = Collector::start().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.header("x-timer-attempt") == "1" { 503 } else { 200 }));
    let mut service = Service::start_with(&backend, &traced(&collector.url())).await;
    let client = service.client();
    let policy = json!({"max_retries": 1, "initial_interval": "10ms"});
    let timer = json!({"delay": "1ms", "retry_policy": policy, "callback": callback_to(&receiver.url("/hook"), &json!(1))});
    let id = create_traced(&client, &timer).await;
    let calls = receiver.wait_for(2, SOON).await;
    client.wait_for_status(&id, "completed").await;

    let created = collector.wait_for("POST /timers", |_| true).await;
    assert_eq!((created.trace_id.as_str(), created.parent_id.as_str()), (TRACE, SPAN));
    assert_eq!((created.service.as_str(), created.attribute("http.response.status_code")), ("timer", "201"));
    let receiver_url = receiver.url("");
    for (call, attempt) in calls.iter().zip(["1", "2"]) {
        let fired = collector.wait_for("timer.fire", |span| span.attribute("timer.attempt") == attempt).await;
        assert_eq!((fired.attribute("timer.id"), fired.attribute("timer.namespace")), (id.as_str(), "default"));
        assert_eq!(fired.attribute("timer.destination"), receiver_url.trim_start_matches("http://"));
        assert_eq!(fired.links, [(TRACE.to_owned(), created.span_id.clone())]);
        assert!(fired.trace_id != TRACE && fired.parent_id.is_empty(), "{fired:?}");
        let called = collector.wait_for(&format!("POST {receiver_url}"), |span| span.trace_id == fired.trace_id).await;
        assert_eq!(called.parent_id, fired.span_id);
        assert_eq!((called.is_error, fired.is_error), (attempt == "1", attempt == "1"));
        assert_eq!(called.attribute("http.response.status_code"), if attempt == "1" { "503" } else { "200" });
        assert_eq!(ids(call.header("traceparent")), (called.trace_id.clone(), called.span_id.clone()));
        // The log names the same.
        let line = service.log().lines().map(read_line).find(|line| line["timer.attempt"] == json!(attempt.parse::<u32>().ok()));
        let line = line.unwrap_or_else(|| panic!("attempt {attempt} in the log"));
        assert_eq!((&line["trace_id"], &line["span_id"]), (&json!(called.trace_id), &json!(called.span_id)), "{line}");
        assert_eq!(line["timer.id"], json!(id), "{line}");
    }
    service.stop().await;
}

/// What every line of a log in JSON has.
fn read_line(line: &str) -> Value {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    for name in ["timestamp", "level", "message"] {
        assert!(line[name].is_string(), "{name} in {line}");
    }
    line
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_can_be_a_part_of_the_trace_of_its_creation() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let (collector, nats) = (Collector::start().await, blocking(Nats::start));
    let (url, collector_url) = (nats.url(), collector.url());
    let settings = [&traced(&collector_url)[..], &[("TRACE_FIRING", "parent"), ("NATS_URL", &url)]].concat();
    let mut service = Service::start_with(&backend, &settings).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    let listener = Bus::connect(&url).await.listen("orders.late").await;
    create_traced(&client, &json!({"delay": "1ms", "callback": told_to("orders.late", &json!(1))})).await;
    let heard = &listener.wait_for(1, SOON).await[0];

    let created = collector.wait_for("POST /timers", |_| true).await;
    let fired = collector.wait_for("timer.fire", |_| true).await;
    assert_eq!((fired.trace_id.as_str(), &fired.parent_id, fired.links.len()), (TRACE, &created.span_id, 0));
    assert_eq!(fired.attribute("timer.destination"), "orders.late");
    let published = collector.wait_for("publish nats", |_| true).await;
    assert_eq!((published.trace_id.as_str(), &published.parent_id), (TRACE, &fired.span_id));
    assert_eq!(ids(heard.header("traceparent")), (TRACE.to_owned(), published.span_id));
    assert_eq!(heard.header("tracestate"), STATE);
    // Requests for the state of the service come all the time, and are no traces.
    assert!(collector.spans().iter().all(|span| !span.name.contains("/healthz")), "{:?}", collector.spans());
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_traces_of_its_own_the_service_passes_on_those_of_clients() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nats = blocking(Nats::start);
    let url = nats.url();
    let receiver = Receiver::start();
    let mut service = Service::start_with_commands(&backend, &url).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    let bus = Bus::to_commands(&url).await;
    let listener = bus.listen("orders.late").await;
    create_traced(&client, &json!({"delay": "1ms", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
    create_traced(&client, &json!({"delay": "1ms", "callback": told_to("orders.late", &json!(1))})).await;
    bus.command_in_trace(&schedule_timer("acme", "traced", now()), &parent(), STATE).await;
    let call = &receiver.wait_for(1, SOON).await[0];
    assert_eq!((call.header("traceparent"), call.header("tracestate")), (parent().as_str(), STATE));
    let heard = &listener.wait_for(1, SOON).await[0];
    assert_eq!((heard.header("traceparent"), heard.header("tracestate")), (parent().as_str(), STATE));
    let mut events = bus.events();
    let event = &events.wait_for(1, SOON).await[0];
    assert_eq!((event.header("traceparent"), event.header("tracestate")), (parent().as_str(), STATE));
    service.stop().await;
}

/// A collector that is away, or slow, costs spans and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_holds_nothing_up() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let nowhere = format!("http://127.0.0.1:{}", throwaway::free_port());
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &traced(&nowhere)).await;
    let client = service.client();
    for n in 0..20 {
        create_traced(&client, &json!({"delay": "1ms", "callback": callback_to(&receiver.url("/"), &json!(n))})).await;
    }
    receiver.wait_for(20, SOON).await;
    client.wait_until_finished(SOON).await;
    service.stop().await;
}
