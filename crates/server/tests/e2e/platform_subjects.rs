//! Callbacks over NATS never reach the subjects of the platform itself: what is published there commands any tenant's timers, or
//! passes for an event.

use std::time::Duration;

use async_nats::jetstream::stream::{self, Republish, SubjectTransform};
use serde_json::{Value, json};
use throwaway::Nats;

use crate::rig::{
    Answer, Backend, Bus, COMMANDS, Client, DEAD_SUBJECT, EVENTS, Message, Receiver, Service, beside_others, blocking,
    callback_to, eventually, for_each_store, now, schedule_timer, stored_at, told_to, with_commands,
};

const SOON: Duration = Duration::from_secs(15);
const FAR: &str = "2099-01-01T00:00:00Z";
const VICTIM: &str = "victim";
const PLATFORM: [&str; 6] = [
    "timer.commands.schedule",
    "timer.commands.any.other.one",
    "timer.commands.dead",
    "timer.events.due.victim",
    "timer.events.other",
    "_R_.reply",
];

for_each_store!(
    callbacks_to_the_subjects_of_the_platform_are_refused,
    a_stored_callback_to_a_subject_of_the_platform_is_never_published,
    a_command_never_moves_a_timer_of_another_kind,
    a_namespace_publishes_only_to_its_own_subjects,
);

/// A broker of its own, a service that takes commands, and a tenant with two timers that no other tenant may touch.
struct Stage {
    service: Service,
    admin: Client,
    attacker: Client,
    bus: Bus,
    ids: [String; 2],
    before: [Value; 2],
    _nats: Nats,
    _receiver: Receiver,
}

impl Stage {
    async fn open(backend: &Backend, nats: Nats) -> Self {
        let service = Service::start_with_commands(backend, &nats.url()).await;
        let admin = service.client();
        let bus = Bus::to_commands(&nats.url()).await;
        let receiver = Receiver::start();
        let callback = callback_to(&receiver.url("/"), &json!(1));
        let http = admin.create(&json!({"execute_at": FAR, "namespace": VICTIM, "key": "http", "callback": callback})).await;
        bus.schedule(VICTIM, "call", now() + 3_600_000_000).await;
        let event = eventually("the timer of the command", SOON, async || id_of(&admin, "call").await).await;
        let before = [admin.timer(&http).await, admin.timer(&event).await].map(unchanging);
        let attacker = admin.tenant("mallory").await;
        Self { service, admin, attacker, bus, ids: [http, event], before, _nats: nats, _receiver: receiver }
    }

    /// Commands that would fire, move and plant timers of the victim, and an event that belongs to no timer.
    fn forgeries(&self) -> [Value; 4] {
        let event = json!({"id": "forged", "type": "DueTimeReached", "tenantId": VICTIM, "timestampMs": 1,
            "payload": {"tenantId": VICTIM, "serviceCallId": "call", "reachedAt": "2026-01-01T00:00:00Z"}});
        let moved = schedule_timer(VICTIM, "http", 32_472_144_000_000_000);
        [schedule_timer(VICTIM, "call", now()), moved, schedule_timer(VICTIM, "planted", now()), event]
    }

    /// Everything that happened before a command of the test's own has had its effect by now: no timer of the victim was touched, and
    /// no event was published but the test's own.
    async fn assert_untouched(&self, marker: &str) {
        self.bus.schedule("marker", marker, now()).await;
        let events = self.bus.events().wait_for_event_of(marker, SOON).await;
        assert!(events.iter().all(|event| event.tenant == "marker"), "{events:?}");
        for (id, before) in self.ids.iter().zip(&self.before) {
            assert_eq!(unchanging(self.admin.timer(id).await), *before);
        }
        assert_eq!(id_of(&self.admin, "planted").await, None);
    }

    /// Commands in the stream that the test has not sent itself, dead letters aside.
    async fn commands(&self) -> Vec<Message> {
        let mut witness = self.bus.witness(COMMANDS);
        witness.read().await.iter().filter(|message| message.subject != DEAD_SUBJECT).cloned().collect()
    }
}

fn unchanging(mut timer: Value) -> Value {
    timer["time_left"] = Value::Null;
    timer
}

async fn id_of(client: &Client, key: &str) -> Option<String> {
    let list = client.get(&format!("/timers?namespace={VICTIM}&limit=200")).await.json();
    let timers = list["data"]["timers"].as_array().cloned().unwrap_or_default();
    timers.iter().find(|timer| timer["key"] == key).and_then(|timer| timer["id"].as_str().map(str::to_owned))
}

fn assert_refused(answer: &Answer, topic: &str) {
    assert_field_refused(answer, "callback", topic);
}

fn assert_field_refused(answer: &Answer, field: &str, topic: &str) {
    assert_eq!(answer.status, 400, "{field} {topic}: {}", answer.text);
    let complaint = format!("{field}.topic must not be a subject of the platform");
    assert!(answer.message().starts_with(&complaint), "{field} {topic}: {}", answer.text);
}

async fn callbacks_to_the_subjects_of_the_platform_are_refused(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend, blocking(Nats::start)).await;
    let own = json!({"execute_at": FAR, "namespace": "mallory", "callback": told_to("orders.late", &json!(1))});
    let own = stage.attacker.create(&own).await;
    for topic in PLATFORM {
        for client in [&stage.attacker, &stage.admin] {
            for forged in stage.forgeries() {
                for callback in [told_to(topic, &forged), stored_at(topic, &forged)] {
                    let timer = json!({"delay": "0s", "namespace": "mallory", "callback": callback});
                    assert_refused(&client.post(&timer.to_string()).await, topic);
                    assert_refused(&client.try_update(&own, &json!({"callback": callback})).await.expect("an answer"), topic);
                    let batch = client.send("POST", "/timers/batch", Some(&json!({"timers": [timer]}))).await.json();
                    assert_eq!(batch["data"]["results"][0]["status"], 400, "{topic}: {batch}");
                }
            }
        }
        // What follows the end of a timer is published as well.
        for follow_up in ["on_success", "on_failure"] {
            let given = json!({follow_up: stored_at(topic, &stage.forgeries()[0])});
            let mut timer = json!({"delay": "0s", "namespace": "mallory", "callback": told_to("orders.late", &json!(1))});
            timer[follow_up] = given[follow_up].clone();
            assert_field_refused(&stage.attacker.post(&timer.to_string()).await, follow_up, topic);
            assert_field_refused(&stage.attacker.try_update(&own, &given).await.expect("an answer"), follow_up, topic);
        }
    }
    stage.assert_untouched("end").await;
    assert_eq!(stage.commands().await.len(), 2, "the test's own");
    assert_eq!(stage.attacker.timer(&own).await["callback_config"]["topic"], "orders.late");
    stage.service.stop().await;
}

async fn a_stored_callback_to_a_subject_of_the_platform_is_never_published(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend, blocking(Nats::start)).await;
    let mut planted = Vec::new();
    for (n, forged) in stage.forgeries().iter().enumerate() {
        let (old, new) = if n < 3 { ("later.commands", "timer.commands") } else { ("later.events.due", "timer.events.due") };
        let timer = |callback| json!({"execute_at": FAR, "namespace": "mallory", "callback": callback});
        planted.push(stage.attacker.create(&timer(told_to(&format!("{old}.{VICTIM}"), forged))).await);
        planted.push(stage.attacker.create(&timer(stored_at(&format!("{old}.{VICTIM}"), forged))).await);
        // As the version before has let them in.
        let sql = format!("UPDATE definition SET callback_config = replace(callback_config, '{old}', '{new}')");
        blocking(|| backend.execute(&sql));
    }
    for id in &planted {
        let fired = stage.attacker.send("POST", &format!("/timers/{id}/fire"), Some(&json!({}))).await;
        assert_eq!(fired.status, 200, "{}", fired.text);
        let failed = stage.attacker.wait_for_status(id, "failed").await;
        let error = failed["last_error"].as_str().unwrap_or_default();
        assert!(error.starts_with("callback.topic must not be a subject of the platform"), "{failed}");
    }
    stage.assert_untouched("end").await;
    assert_eq!(stage.commands().await.len(), 2, "the test's own");
    stage.service.stop().await;
}

async fn a_command_never_moves_a_timer_of_another_kind(backend: Backend) {
    let _machine = beside_others().await;
    let mut stage = Stage::open(&backend, blocking(Nats::start)).await;
    stage.bus.schedule(VICTIM, "http", now()).await;
    let mut commands = stage.bus.witness(COMMANDS);
    let is_there = |messages: &[Message]| messages.iter().any(|message| message.subject == DEAD_SUBJECT);
    let messages = commands.wait_until("a dead letter", SOON, is_there).await;
    let dead: Vec<_> = messages.iter().filter(|message| message.subject == DEAD_SUBJECT).collect();
    assert_eq!(dead[0].header("X-Timer-Reason"), "serviceCallId must not be the key of a timer of another kind");

    // Nor does a request move the timer of a command.
    let callback = callback_to("http://127.0.0.1:9/", &json!(1));
    let keep = json!({"delay": "1s", "namespace": VICTIM, "key": "call", "on_conflict": "keep", "callback": callback});
    let answer = stage.admin.post(&keep.to_string()).await;
    assert_eq!(answer.status, 409, "{}", answer.text);
    stage.assert_untouched("end").await;
    stage.service.stop().await;
}

async fn a_namespace_publishes_only_to_its_own_subjects(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let file = backend.home().join("namespaces.json");
    let rules = json!({"billing": {"subjects": ["billing.>", "shared.*.in", "timer.>"]}, "mute": {"subjects": []}});
    std::fs::write(&file, rules.to_string()).expect("a file in the directory of the test");
    let file = file.display().to_string();
    let mut open = Service::start_with_nats(&backend, &nats.url()).await;
    let waiting = json!({"execute_at": FAR, "namespace": "billing", "callback": told_to("orders.late", &json!(1))});
    let waiting = open.client().create(&waiting).await;
    open.stop().await;

    let url = nats.url();
    let mut service = Service::start_with(&backend, &[&with_commands(&url)[..], &[("NAMESPACES_FILE", &file)]].concat()).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    let listener = Bus::connect(&nats.url()).await.listen(">").await;
    let of_billing = r#"callback.topic must be one of the subjects of its namespace: billing.>, shared.*.in, timer.>"#;
    for (namespace, topic, complaint) in [
        ("billing", "billing.late", ""),
        ("billing", "shared.a.in", ""),
        ("free", "orders.late", ""),
        ("billing", "billing", of_billing),
        ("billing", "shared.a.b.in", of_billing),
        ("billing", "orders.late", of_billing),
        ("billing", "timer.commands.schedule", "callback.topic must not be a subject of the platform"),
        ("mute", "orders.late", "callback.topic must not be given: its namespace publishes to no subject"),
    ] {
        let own = json!({"delay": "1h", "namespace": namespace, "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
        let own = client.create(&own).await;
        let callback = told_to(topic, &json!(1));
        let timer = json!({"delay": "0s", "namespace": namespace, "callback": callback});
        let made = client.post(&timer.to_string()).await;
        let updated = client.try_update(&own, &json!({"callback": callback})).await.expect("an answer");
        for follow_up in ["on_success", "on_failure"] {
            let answer = client.try_update(&own, &json!({follow_up: callback})).await.expect("an answer");
            assert_eq!(answer.status, if complaint.is_empty() { 200 } else { 400 }, "{follow_up} {topic}: {}", answer.text);
            let expected = complaint.replacen("callback", follow_up, 1);
            assert!(complaint.is_empty() || answer.message().starts_with(&expected), "{topic}: {}", answer.text);
        }
        if complaint.is_empty() {
            assert_eq!((made.status, updated.status), (201, 200), "{topic}: {} {}", made.text, updated.text);
            client.wait_for_status(&made.id(), "completed").await;
            continue;
        }
        for answer in [made, updated] {
            assert_eq!(answer.status, 400, "{topic}: {}", answer.text);
            assert!(answer.message().starts_with(complaint), "{topic}: {}", answer.text);
        }
    }
    // One from before the rule.
    client.send("POST", &format!("/timers/{waiting}/fire"), Some(&json!({}))).await;
    let failed = client.wait_for_status(&waiting, "failed").await;
    assert!(failed["last_error"].as_str().is_some_and(|error| error.starts_with(of_billing)), "{failed}");
    let heard = listener.heard();
    let late = heard.iter().filter(|message| message.subject == "orders.late").count();
    assert_eq!(late, 1, "that of the namespace without rules");
    service.stop().await;
}

/// The operator has mapped other subjects onto those of the platform.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mapped_forms_of_the_platforms_subjects_are_closed_too() {
    let _machine = beside_others().await;
    let (backend, nats) = (Backend::sqlite(), blocking(Nats::start));
    let bus = Bus::connect(&nats.url()).await;
    let listening_on = |name: &str, subjects: &[&str]| stream::Config {
        name: name.to_owned(),
        subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
        duplicate_window: Duration::from_secs(600),
        ..stream::Config::default()
    };
    let mapped = SubjectTransform { source: "acme.in.>".to_owned(), destination: "timer.commands.>".to_owned() };
    let commands = listening_on(COMMANDS, &["timer.commands.>", "acme.in.>"]);
    bus.make_stream_as(stream::Config { subject_transform: Some(mapped), ..commands }).await;
    let sourced = stream::Source { name: "ARCHIVE".to_owned(), ..stream::Source::default() };
    bus.make_stream_as(listening_on("ARCHIVE", &["archive.*.due"])).await;
    bus.make_stream_as(stream::Config { sources: Some(vec![sourced]), ..listening_on(EVENTS, &["timer.events.>"]) }).await;
    // Which the streams of the platform do not show.
    let (source, destination) = ("bridge.>".to_owned(), "timer.commands.>".to_owned());
    let republish = Republish { source, destination, headers_only: false };
    bus.make_stream_as(stream::Config { republish: Some(republish), ..listening_on("BRIDGE", &["bridge.>"]) }).await;

    let mut stage = Stage::open(&backend, nats).await;
    for topic in ["acme.in.schedule", "acme.in.a.b", "archive.x.due"] {
        let timer = json!({"delay": "0s", "namespace": "mallory", "callback": told_to(topic, &stage.forgeries()[0])});
        assert_refused(&stage.attacker.post(&timer.to_string()).await, topic);
    }
    for forged in &stage.forgeries()[..3] {
        let timer = json!({"delay": "0s", "namespace": "mallory", "callback": stored_at("bridge.schedule", forged)});
        let id = stage.attacker.create(&timer).await;
        stage.attacker.wait_for_status(&id, "completed").await;
    }
    let mut commands = stage.bus.witness(COMMANDS);
    let all_dead = |all: &[Message]| all.iter().filter(|message| message.subject == DEAD_SUBJECT).count() == 3;
    for letter in commands.wait_until("three dead letters", SOON, all_dead).await {
        if letter.subject == DEAD_SUBJECT {
            assert_eq!(letter.header("X-Timer-Reason"), "message must not be a callback of this service");
        }
    }
    stage.assert_untouched("end").await;
    stage.service.stop().await;
}

/// A node without the NATS command consumer shares the streams with nodes that have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_command_consumer_knows_the_platforms_subjects_too() {
    let _machine = beside_others().await;
    let (backend, nats) = (Backend::sqlite(), blocking(Nats::start));
    let bus = Bus::connect(&nats.url()).await;
    let timer = json!({"delay": "1s", "namespace": "mallory", "callback": told_to("acme.out.due", &json!(1))});
    let mut before = Service::start_with_nats(&backend, &nats.url()).await;
    let stored = before.client().create(&timer).await;
    before.stop().await;

    let subjects = ["timer.events.>", "acme.out.>"].map(str::to_owned).to_vec();
    bus.make_stream_as(stream::Config { name: EVENTS.to_owned(), subjects, ..stream::Config::default() }).await;
    let mut service = Service::start_with_nats(&backend, &nats.url()).await;
    let client = service.client();
    // It may be due before the service knows what the stream listens on: it has to wait for that.
    let failed = client.wait_for_status(&stored, "failed").await;
    let error = failed["last_error"].as_str().unwrap_or_default();
    assert!(error.starts_with("callback.topic must not be a subject of the platform"), "{failed}");
    assert_refused(&client.post(&timer.to_string()).await, "acme.out.due");
    assert_eq!(bus.witness(EVENTS).read().await.len(), 0);

    let own = client.create(&json!({"delay": "0s", "callback": told_to("orders.late", &json!(1))})).await;
    client.wait_for_status(&own, "completed").await;
    service.stop().await;
}
