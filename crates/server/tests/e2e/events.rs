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
/// How much a resumed stream repeats of what happened before its last id was sent, as it is promised.
const REPEATED_MICROS_MAX: i64 = 2_000_000;
/// How long the commit of an event and the way of an id to its client may take; what was being written then is repeated as well.
const WRITTEN_MICROS_MAX: i64 = 1_000_000;

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

/// The ids of timers for which a request was acknowledged.
type Acknowledged = Arc<Mutex<BTreeSet<String>>>;

/// Creates timers, one after the other, until it is told to stop: some that are due at once, and some that are not, and are moved to now.
struct Load {
    stop: Arc<AtomicBool>,
    created: Acknowledged,
    moved: Acknowledged,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(clients: &[Client], url: &str) -> Self {
        let (stop, created, moved) = (Arc::<AtomicBool>::default(), Acknowledged::default(), Acknowledged::default());
        let task = |(n, client): (usize, &Client)| {
            let (client, stop) = (client.clone(), Arc::clone(&stop));
            let (created, moved) = (Arc::clone(&created), Arc::clone(&moved));
            let is_moved = n % 2 == 1;
            let delay = if is_moved { "1h" } else { "0s" };
            let timer = json!({"delay": delay, "metadata": {"far": is_moved}, "callback": callback_to(url, &json!(1))});
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match client.try_create(&timer).await {
                        Ok(answer) if answer.is_success() && is_moved => {
                            let change = json!({"delay": "0s", "metadata": {"far": false}});
                            if client.try_update(&answer.id(), &change).await.is_ok_and(|answer| answer.status == 200) {
                                moved.lock().expect("no panic").insert(answer.id());
                            }
                        }
                        Ok(answer) if answer.is_success() => _ = created.lock().expect("no panic").insert(answer.id()),
                        _ => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            })
        };
        let tasks = clients.iter().enumerate().map(task).collect();
        Self { stop, created, moved, tasks }
    }

    /// How many timers of the kind with fewer were acknowledged.
    fn count(&self) -> usize {
        self.created.lock().expect("no panic").len().min(self.moved.lock().expect("no panic").len())
    }

    async fn wait_for(&self, more: usize) {
        let wanted = self.count() + more;
        eventually(&format!("{wanted} timers are acknowledged"), SOON, async || (self.count() >= wanted).then_some(())).await;
    }

    /// Those that were acknowledged as created, and those that were acknowledged as moved.
    async fn stop(self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("a load that ends");
        }
        let taken = |acknowledged: &Acknowledged| acknowledged.lock().expect("no panic").clone();
        (taken(&self.created), taken(&self.moved))
    }
}

/// What a client has seen of events, over several streams.
#[derive(Default)]
struct Seen {
    /// By type, timer and time; how often.
    events: BTreeMap<(String, String, String), usize>,
    /// The timers, by type.
    timers: BTreeMap<String, BTreeSet<String>>,
    last: Option<String>,
    /// When the last id came.
    last_at: i64,
    repeated: Vec<i64>,
}

impl Seen {
    fn add(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        self.last = Some(text(&event["event_id"]));
        self.last_at = now();
        if event["type"] == "position" {
            return;
        }
        let key = (text(&event["type"]), text(&event["timer"]["id"]), text(&event["at"]));
        self.timers.entry(key.0.clone()).or_default().insert(key.1.clone());
        let count = self.events.entry(key).or_default();
        *count += 1;
        if *count > 1 {
            self.repeated.push(micros(&text(&event["at"])));
        }
    }

    fn has(&self, kind: &str, ids: &BTreeSet<String>) -> bool {
        self.timers.get(kind).map_or(ids.is_empty(), |seen| ids.is_subset(seen))
    }

    /// Reads on until every one of these timers has an event of each of these types.
    async fn complete(&mut self, stream: &mut Stream<Value>, kinds: &[&str], ids: &BTreeSet<String>) {
        while !kinds.iter().all(|kind| self.has(kind, ids)) {
            self.add(&next(stream).await);
        }
    }
}

async fn a_stream_that_is_resumed_after_a_kill_has_missed_nothing(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::counting();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("ATTEMPTS", "all")]).await;
    let client = service.client();
    let mut seen = Seen::default();
    let mut stream = client.follow("", None).await.expect("a stream");
    let load = Load::start(&vec![client.clone(); 4], &receiver.url("/"));
    let mut interrupted = Vec::new();
    for _ in 0..3 {
        let wanted = load.count() + 25;
        while load.count() < wanted {
            seen.add(&next(&mut stream).await);
        }
        service.kill();
        while let Some(event) = stream.recv().await {
            seen.add(&event);
        }
        service.start_again().await;
        interrupted.push((seen.last_at, now()));
        load.wait_for(10).await;
        stream = client.follow("", seen.last.as_deref()).await.expect("a stream");
    }
    let (created, moved) = load.stop().await;
    // Those of which no client knows that they were moved.
    let unmoved = json!({"status": "pending", "metadata": {"far": "true"}});
    let cancel = json!({"action": "cancel", "filter": unmoved, "expected_max": 1_000});
    assert_eq!(client.send("POST", "/timers/bulk", Some(&cancel)).await.status, 200);
    client.wait_until_finished(SOON * 2).await;
    seen.complete(&mut stream, &["created", "attempt", "finished"], &created).await;
    seen.complete(&mut stream, &["created", "changed", "attempt", "finished"], &moved).await;

    let repeated_max = REPEATED_MICROS_MAX + tolerated(WRITTEN_MICROS_MAX);
    let is_meant = |at: &i64| interrupted.iter().any(|(from, to)| (from - repeated_max..=*to).contains(at));
    let unexpected: Vec<_> = seen.repeated.iter().filter(|at| !is_meant(at)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} {interrupted:?}");
    let (created, moved, repeated) = (created.len(), moved.len(), seen.repeated.len());
    println!("{}: {created} created and {moved} moved over 3 kills, {repeated} events twice", backend.name());
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
        seen.complete(stream, &["created", "finished"], &ids).await;
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
