//! Streams of events: complete over kills, restarts and nodes, and for clients that read slowly.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc::Receiver as Stream, task::JoinHandle};

use crate::rig::{
    Backend, Client, Nodes, Receiver, Reply, Service, beside_others, callback_to, eventually, for_each_store, heavy, instant,
    micros, now, tolerated,
};

const SOON: Duration = Duration::from_secs(15);
/// How much a resumed stream repeats of what happened before the interruption: two seconds, and what the commits took.
const REPEATED_MICROS_MAX: i64 = 5_000_000;

for_each_store!(
    a_stream_shows_the_life_of_a_timer,
    a_stream_that_is_resumed_after_a_kill_has_missed_nothing,
    a_client_that_reads_late_misses_nothing,
    a_key_follows_only_its_own_namespaces,
    a_stream_does_not_hold_up_the_end_of_the_service,
);

async fn next(stream: &mut Stream<Value>) -> Value {
    let event = tokio::time::timeout(tolerated(SOON), stream.recv()).await;
    event.expect("an event in time").expect("the stream goes on")
}

/// The next event of this timer.
async fn next_of(stream: &mut Stream<Value>, id: &str) -> Value {
    loop {
        let event = next(stream).await;
        if event["timer"]["id"] == id {
            return event;
        }
    }
}

async fn a_stream_shows_the_life_of_a_timer(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.path == "/refused" { 503 } else { 200 }));
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let mut stream = client.follow("", None).await.expect("a stream");
    assert_eq!(next(&mut stream).await["type"], "position");

    let id = client.create(&json!({"delay": "1h", "callback": callback_to(&receiver.url("/refused"), &json!(1))})).await;
    let created = next_of(&mut stream, &id).await;
    assert_eq!((&created["type"], &created["timer"]["status"]), (&json!("created"), &json!("pending")));
    assert_eq!(created["at"], created["timer"]["created_at"]);
    assert_eq!(client.try_update(&id, &json!({"delay": "2h"})).await.expect("an answer").status, 200);
    assert_eq!(next_of(&mut stream, &id).await["type"], "changed");
    assert_eq!(client.send("POST", &format!("/timers/{id}/fire"), None).await.status, 200);
    assert_eq!(next_of(&mut stream, &id).await["type"], "changed");
    let (one, other) = (next_of(&mut stream, &id).await, next_of(&mut stream, &id).await);
    let (attempt, finished) = if one["type"] == "attempt" { (one, other) } else { (other, one) };
    assert_eq!((&attempt["type"], &attempt["attempt"]["status"]), (&json!("attempt"), &json!(503)));
    assert_eq!((&finished["type"], &finished["timer"]["status"]), (&json!("finished"), &json!("failed")));
    assert_eq!(client.send("POST", &format!("/timers/{id}/retry"), None).await.status, 200);
    assert_eq!(next_of(&mut stream, &id).await["type"], "changed");
    service.stop().await;
}

/// Creates timers that are due at once, one after the other, until it is told to stop. Those that were acknowledged.
struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(clients: &[Client], url: &str) -> Self {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<Mutex<BTreeSet<String>>>::default());
        let task = |client: &Client| {
            let (client, stop, acknowledged) = (client.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
            let timer = json!({"delay": "0s", "callback": callback_to(url, &json!(1))});
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match client.try_create(&timer).await {
                        Ok(answer) if answer.is_success() => _ = acknowledged.lock().expect("no panic").insert(answer.id()),
                        _ => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            })
        };
        let tasks = clients.iter().map(task).collect();
        Self { stop, acknowledged, tasks }
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().expect("no panic").len()
    }

    async fn wait_for(&self, more: usize) {
        let wanted = self.count() + more;
        eventually(&format!("{wanted} timers are acknowledged"), SOON, async || (self.count() >= wanted).then_some(())).await;
    }

    async fn stop(self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("a load that ends");
        }
        self.acknowledged.lock().expect("no panic").clone()
    }
}

/// What a client has seen of events, over several streams.
#[derive(Default)]
struct Seen {
    /// By type, timer and time; how often.
    events: BTreeMap<(String, String, String), usize>,
    last: Option<String>,
    repeated: Vec<i64>,
}

impl Seen {
    fn add(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        self.last = Some(text(&event["event_id"]));
        if event["type"] == "position" {
            return;
        }
        let key = (text(&event["type"]), text(&event["timer"]["id"]), text(&event["at"]));
        let count = self.events.entry(key).or_default();
        *count += 1;
        if *count > 1 {
            self.repeated.push(micros(&text(&event["at"])));
        }
    }

    fn has(&self, kind: &str, ids: &BTreeSet<String>) -> bool {
        let seen: BTreeSet<&String> = self.events.keys().filter(|(of, ..)| of == kind).map(|(_, id, _)| id).collect();
        ids.iter().all(|id| seen.contains(id))
    }

    /// Reads on until every one of these timers was created and has finished.
    async fn complete(&mut self, stream: &mut Stream<Value>, ids: &BTreeSet<String>) {
        while !self.has("created", ids) || !self.has("finished", ids) {
            self.add(&next(stream).await);
        }
    }
}

async fn a_stream_that_is_resumed_after_a_kill_has_missed_nothing(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::counting();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let mut seen = Seen::default();
    let mut stream = client.follow("types=created,finished", None).await.expect("a stream");
    let load = Load::start(&vec![client.clone(); 4], &receiver.url("/"));
    let mut interrupted = Vec::new();
    for _ in 0..3 {
        let wanted = load.count() + 50;
        while load.count() < wanted {
            seen.add(&next(&mut stream).await);
        }
        service.kill();
        let killed_at = now();
        while let Some(event) = stream.recv().await {
            seen.add(&event);
        }
        service.start_again().await;
        interrupted.push((killed_at, now()));
        load.wait_for(20).await;
        stream = client.follow("types=created,finished", seen.last.as_deref()).await.expect("a stream");
    }
    let ids = load.stop().await;
    client.wait_until_finished(SOON * 2).await;
    seen.complete(&mut stream, &ids).await;

    let is_meant = |at: &i64| interrupted.iter().any(|(from, to)| (from - tolerated(REPEATED_MICROS_MAX)..=*to).contains(at));
    let unexpected: Vec<_> = seen.repeated.iter().filter(|at| !is_meant(at)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} {interrupted:?}");
    println!("{}: {} timers over 3 kills, {} events twice", backend.name(), ids.len(), seen.repeated.len());
    service.stop().await;
}

async fn a_client_that_reads_late_misses_nothing(backend: Backend) {
    let _machine = heavy().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let mut stream = client.follow("types=created", None).await.expect("a stream");
    let mut ids = BTreeSet::new();
    let timer =
        json!({"delay": "1h", "metadata": {"text": "x".repeat(500)}, "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    for _ in 0..8 {
        let timers = vec![timer.clone(); 1_000];
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let results = answer.json()["data"]["results"].as_array().expect("results").clone();
        ids.extend(results.iter().map(|result| result["timer"]["id"].as_str().expect("an id").to_owned()));
    }
    assert_eq!(ids.len(), 8_000);
    let mut seen = BTreeSet::new();
    while seen.len() < ids.len() {
        if let Some(id) = next(&mut stream).await["timer"]["id"].as_str() {
            seen.insert(id.to_owned());
        }
    }
    assert_eq!(seen, ids);
    service.stop().await;
}

async fn a_key_follows_only_its_own_namespaces(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let administrator = service.client();
    let tenant = administrator.tenant("a").await;
    let mut all = administrator.follow("types=created", None).await.expect("a stream");
    let mut own = tenant.follow("types=created", None).await.expect("a stream");
    assert_eq!(tenant.follow("namespace=b", None).await.expect_err("it is not open").status, 403);
    let timer = |namespace: &str| json!({"delay": "1h", "namespace": namespace, "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    let other = administrator.create(&timer("b")).await;
    let meant = administrator.create(&timer("a")).await;
    next_of(&mut all, &other).await;
    next_of(&mut all, &meant).await;
    // What came before it would have been first.
    let first = loop {
        let event = next(&mut own).await;
        if event["type"] != "position" {
            break event;
        }
    };
    assert_eq!(first["timer"]["id"], meant.as_str());

    let mut filtered = administrator.follow("metadata.customer.id=42&types=created", None).await.expect("a stream");
    administrator.create(&timer("a")).await;
    let mut with_metadata = timer("a");
    with_metadata["metadata"] = json!({"customer": {"id": 42}});
    let meant = administrator.create(&with_metadata).await;
    let first = loop {
        let event = next(&mut filtered).await;
        if event["type"] != "position" {
            break event;
        }
    };
    assert_eq!(first["timer"]["id"], meant.as_str());
    service.stop().await;
}

async fn a_stream_does_not_hold_up_the_end_of_the_service(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let mut stream = service.client().follow("", None).await.expect("a stream");
    next(&mut stream).await;
    let asked = now();
    service.stop().await;
    assert!(now() - asked < tolerated(10_000_000), "the stream was waited for");
    while let Some(event) = stream.recv().await {
        assert_eq!(event["type"], "position");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_one_node_shows_what_happens_on_the_other() {
    let _machine = heavy().await;
    let receiver = Receiver::counting();
    let nodes = Nodes::start(2).await;
    nodes.wait_until_shared(2).await;
    let clients = nodes.clients();
    let mut streams = Vec::new();
    for client in &clients {
        streams.push(client.follow("types=created,finished", None).await.expect("a stream"));
    }
    let mut ids = BTreeSet::new();
    for n in 0..40 {
        let due = instant(now() + 6_000_000);
        let timer = json!({"execute_at": due, "callback": callback_to(&receiver.url("/"), &json!(1))});
        ids.insert(clients[n % 2].create(&timer).await);
    }
    for stream in &mut streams {
        let mut seen = Seen::default();
        seen.complete(stream, &ids).await;
        assert!(seen.repeated.is_empty(), "a live stream repeats nothing");
    }
    // And a stream of one node goes on at the other.
    let mut stream = clients[0].follow("types=created", None).await.expect("a stream");
    let position = next(&mut stream).await["event_id"].as_str().expect("an id").to_owned();
    drop(stream);
    let timer = json!({"delay": "1h", "callback": callback_to(&receiver.url("/"), &json!(1))});
    let id = clients[0].create(&timer).await;
    let mut resumed = clients[1].follow("types=created", Some(&position)).await.expect("a stream");
    next_of(&mut resumed, &id).await;
    nodes.stop().await;
}
