//! Tenants that use the same names never meet: not in any call of any API, not in lists, not in what is done to many at once.

mod trespasses;

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use throwaway::Nats;

use self::trespasses::{Expected, assert_all_operations_are_tried, on_namespace, on_timer, try_all};
use crate::rig::{
    Answer, Backend, Bus, Client, Receiver, Reply, Service, beside_others, blocking, callback_to, eventually, for_each_store,
    instant, now, with_commands,
};

const SOON: Duration = Duration::from_secs(15);
const CLOSED: &str = "namespace must be one that this key opens";
/// Every tenant has a timer under each of these, made through another call each.
const KEYS: [&str; 4] = ["native", "batch", "v1 first", "v1/second"];
const FAR: &str = "2099-01-01T00:00:00Z";

for_each_store!(
    timers_with_the_same_keys_fire_for_their_own_tenants,
    no_tenant_touches_the_timers_of_another,
    what_is_done_to_many_ends_at_the_namespace,
    commands_with_the_same_names_lead_to_events_of_their_own,
);

/// A namespace, a key that opens it, and a receiver.
struct Tenant {
    namespace: &'static str,
    client: Client,
    receiver: Receiver,
}

impl Tenant {
    async fn of(service: &Service, namespace: &'static str) -> Self {
        let receiver = Receiver::replying(|call| if call.path == "/fails" { Reply::Status(500) } else { Reply::Status(200) });
        Self { namespace, client: service.client().tenant(namespace).await, receiver }
    }

    fn content(&self, key: &str) -> Value {
        json!(format!("{key} of {}", self.namespace))
    }

    fn timer(&self, key: &str) -> Value {
        let callback = callback_to(&self.receiver.url("/native"), &self.content(key));
        json!({"execute_at": FAR, "namespace": self.namespace, "key": key, "metadata": {"m": 1}, "callback": callback})
    }

    fn v1_timer(&self, group: &str, key: &str) -> Value {
        let (url, payload) = (self.receiver.url("/v1"), self.content(key));
        json!({"id": key, group: self.namespace, "executeAt": FAR, "callbackUrl": url, "payload": payload})
    }

    /// One timer through each call that makes some, far ahead.
    async fn register(&self) {
        self.client.create(&self.timer(KEYS[0])).await;
        let results = self.batch(&[self.timer(KEYS[1])]).await;
        assert_eq!(results[0]["status"], 201, "{results}");
        for (path, group, key) in [("/api/v1/timers", "groupId", KEYS[2]), ("/api/v1/timers/create", "namespace", KEYS[3])] {
            let made = self.client.send("POST", path, Some(&self.v1_timer(group, key))).await;
            assert_eq!(made.status, 200, "{path}: {}", made.text);
        }
    }

    /// A timer of this tenant with the id that `owner` chose for one of its own.
    fn with_chosen_id(&self, owner: &Self) -> Value {
        let id = format!("01890a5d-ac96-774b-bcce-{:012x}", owner.namespace.as_bytes()[0]);
        let callback = callback_to(&self.receiver.url("/native"), &self.content("chosen"));
        json!({"execute_at": FAR, "namespace": self.namespace, "id": id, "callback": callback})
    }

    async fn batch(&self, timers: &[Value]) -> Value {
        let answer = self.client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"]["results"].clone()
    }

    async fn list(&self, query: &str) -> Value {
        let answer = self.client.get(&format!("/timers?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"].clone()
    }

    /// The id of the timer under this key.
    async fn id(&self, key: &str) -> String {
        let listed = self.list("limit=200").await;
        let found = listed["timers"].as_array().expect("a list").iter().find(|timer| timer["key"] == key);
        found.and_then(|timer| timer["id"].as_str()).unwrap_or_else(|| panic!("{key} in {listed}")).to_owned()
    }

    /// All that does not change by itself of all timers that this tenant has.
    async fn everything(&self) -> Vec<Value> {
        let mut timers = Vec::new();
        for summary in self.list("limit=200&sort=created_at&order=asc").await["timers"].as_array().expect("a list") {
            let mut timer = self.client.timer(summary["id"].as_str().expect("an id")).await;
            timer.as_object_mut().expect("a timer").remove("time_left");
            timers.push(timer);
        }
        timers
    }

    async fn cancel_matching(&self, conditions: Value) -> Answer {
        let mut selection = json!({"expected_max": 1000});
        selection.as_object_mut().expect("an object").extend(conditions.as_object().expect("an object").clone());
        self.client.send("POST", "/timers/cancel", Some(&selection)).await
    }
}

/// An id of another tenant is taken, and that is all that is told of it.
async fn take_the_id_of(owner: &Tenant, intruder: &Tenant) {
    let timer = intruder.with_chosen_id(owner);
    let answer = intruder.client.post(&timer.to_string()).await;
    let body = answer.json();
    assert_eq!((answer.status, &body["data"]), (409, &Value::Null), "{body}");
    let id = timer["id"].as_str().expect("an id");
    for (method, rest) in [("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/fire")] {
        let answer = intruder.client.send(method, &format!("/timers/{id}{rest}"), None).await;
        Expected::Missing.is_told_by(&answer, &format!("{method} /timers/{id}{rest}"));
    }
}

async fn pair(service: &Service) -> [Tenant; 2] {
    let tenants = [Tenant::of(service, "acme").await, Tenant::of(service, "bolt").await];
    for tenant in &tenants {
        tenant.register().await;
    }
    tenants
}

async fn timers_with_the_same_keys_fire_for_their_own_tenants(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let [a, b] = pair(&service).await;
    // Each tenant moves its own, half of them through each API; the other tries to stop them.
    for (owner, other) in [(&a, &b), (&b, &a)] {
        for (n, key) in KEYS.into_iter().enumerate() {
            let id = owner.id(key).await;
            let at = instant(now() + 300_000);
            let moved = if n % 2 == 0 {
                owner.client.send("PUT", &format!("/timers/{id}"), Some(&json!({"execute_at": at}))).await
            } else {
                let body = json!({"namespace": owner.namespace, "timerId": key, "executeAt": at});
                owner.client.send("POST", "/api/v1/timers/update", Some(&body)).await
            };
            assert_eq!(moved.status, 200, "{}", moved.text);
            try_all(other, owner, &on_timer(owner, key, &id)).await;
        }
    }
    service.client().wait_until_finished(SOON).await;
    for tenant in [&a, &b] {
        for timer in tenant.everything().await {
            // The receiver does not speak the protocol of the namespaced API: such a timer fails, after one call.
            let status = if timer["callback_config"]["protocol"] == "timer" { "failed" } else { "completed" };
            assert_eq!((&timer["status"], &timer["attempt"]), (&json!(status), &json!(1)), "{timer}");
        }
        let calls = tenant.receiver.calls();
        let mut told: Vec<Value> = calls
            .iter()
            .map(|call| {
                assert_eq!(call.header("x-timer-namespace"), tenant.namespace, "{call:?}");
                if call.path == "/v1" { call.json()["payload"].clone() } else { call.json() }
            })
            .collect();
        told.sort_by_key(Value::to_string);
        let mut expected = KEYS.map(|key| tenant.content(key));
        expected.sort_by_key(Value::to_string);
        assert_eq!(told, expected, "each once, at its own receiver, with its own content");
    }
    service.stop().await;
}

async fn no_tenant_touches_the_timers_of_another(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let [a, b] = pair(&service).await;
    // One that its owner could try again, one that has ended well, one that was canceled: all with the same keys on both sides.
    for tenant in [&a, &b] {
        for (key, path) in [("failed", "/fails"), ("completed", "/")] {
            let callback = callback_to(&tenant.receiver.url(path), &tenant.content(key));
            let timer = json!({"delay": "0s", "namespace": tenant.namespace, "key": key, "callback": callback});
            let id = tenant.client.create(&timer).await;
            tenant.client.wait_for_status(&id, key).await;
        }
        tenant.client.create(&tenant.with_chosen_id(tenant)).await;
        let id = tenant.client.create(&tenant.timer("canceled")).await;
        assert_eq!(tenant.client.try_cancel(&id).await.expect("an answer").status, 200);
    }
    let before = [a.everything().await, b.everything().await];
    assert_eq!(before.each_ref().map(Vec::len), [KEYS.len() + 4; 2]);
    for (owner, other) in [(&a, &b), (&b, &a)] {
        for key in KEYS.into_iter().chain(["failed", "completed", "canceled"]) {
            try_all(other, owner, &on_timer(owner, key, &owner.id(key).await)).await;
        }
        let mut trespasses = on_namespace(owner);
        try_all(other, owner, &trespasses).await;
        take_the_id_of(owner, other).await;
        trespasses.extend(on_timer(owner, KEYS[0], &owner.id(KEYS[0]).await));
        assert_all_operations_are_tried(&service.client(), &trespasses).await;
    }
    assert_eq!([a.everything().await, b.everything().await], before);
    assert_eq!([a.receiver.count(), b.receiver.count()], [2, 2]);

    // What its owner asks for is done all the same, for the owner alone.
    let id = a.id("failed").await;
    assert_eq!(a.client.send("POST", &format!("/timers/{id}/retry"), None).await.status, 200);
    a.receiver.wait_for(3, SOON).await;
    a.client.wait_for_status(&id, "failed").await;
    assert_eq!((a.receiver.count(), b.receiver.count(), b.everything().await), (3, 2, before[1].clone()));

    // A key of its own does not open what a caller leaves out: the default namespace belongs to no key here.
    let nameless = json!({"delay": "1h", "callback": callback_to(&a.receiver.url("/"), &json!(1))});
    Expected::Closed.is_told_by(&a.client.post(&nameless.to_string()).await, "POST /timers");
    service.stop().await;
}

async fn what_is_done_to_many_ends_at_the_namespace(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let [a, b] = pair(&service).await;
    let theirs = b.everything().await;

    for (tenant, query) in
        [(&a, "limit=200"), (&a, "limit=200&status=pending"), (&a, "limit=200&namespace=acme"), (&b, "limit=200")]
    {
        let listed = tenant.list(query).await;
        let names: Vec<&Value> = listed["timers"].as_array().expect("a list").iter().map(|timer| &timer["namespace"]).collect();
        assert_eq!((listed["total"].as_u64(), names), (Some(4), vec![&json!(tenant.namespace); 4]), "{query}");
    }
    // A cursor of another tenant is refused.
    let cursor = b.list("limit=1&order=asc").await["next_cursor"].as_str().expect("a cursor").to_owned();
    let refused = a.client.get(&format!("/timers?limit=200&order=asc&cursor={cursor}")).await;
    assert_eq!((refused.status, refused.message().starts_with("cursor must be")), (400, true), "{}", refused.message());

    let mut replacing = b.timer(KEYS[0]);
    replacing["on_conflict"] = json!("replace");
    replacing["callback"]["payload"] = json!("stolen");
    let results = a.batch(&[a.timer("more"), replacing, b.timer("more"), a.timer(KEYS[0])]).await;
    let results: Vec<_> =
        results.as_array().expect("a list").iter().map(|result| (&result["status"], &result["message"])).collect();
    let refused = (&json!(403), &json!(CLOSED));
    assert_eq!((results[0].0, results[1], results[2], results[3].0), (&json!(201), refused, refused, &json!(200)), "{results:?}");
    assert_eq!(b.everything().await, theirs);

    for (conditions, canceled) in [
        (json!({"key_prefix": "m"}), 1),
        (json!({"metadata": {"m": 1}}), 2),
        (json!({"status": "pending"}), 2),
        (json!({"namespace": "acme"}), 0),
    ] {
        let answer = a.cancel_matching(conditions.clone()).await;
        let data = &answer.json()["data"];
        assert_eq!(
            (answer.status, data["matched"].as_u64(), data["canceled"].as_u64()),
            (200, Some(canceled), Some(canceled)),
            "{conditions}"
        );
    }
    Expected::Closed.is_told_by(&a.cancel_matching(json!({"namespace": "bolt"})).await, "POST /timers/cancel");
    assert_eq!(b.everything().await, theirs);

    // A key with several namespaces that names none means all of its own, and sees no third.
    let admin = service.client();
    let wanted = json!({"name": "both", "namespaces": ["acme", "bolt"], "rights": "write"});
    let issued = admin.send("POST", "/keys", Some(&wanted)).await.json();
    let both = admin.with_key(issued["data"]["key"].as_str().expect("a key"));
    let of_both = both.get("/timers").await.json();
    let namespaces: BTreeSet<_> =
        of_both["data"]["timers"].as_array().expect("timers").iter().map(|timer| timer["namespace"].to_string()).collect();
    assert_eq!(namespaces, BTreeSet::from(["\"acme\"".to_owned(), "\"bolt\"".to_owned()]));
    assert_eq!(both.get("/timers/count?namespace=acme,default").await.status, 403);
    assert_eq!(both.get("/timers?namespace=bolt").await.json()["data"]["total"], 4);
    assert_eq!(both.get("/timers?namespace=default").await.status, 403);
    assert_eq!(b.everything().await, theirs);
    service.stop().await;
}

async fn commands_with_the_same_names_lead_to_events_of_their_own(backend: Backend) {
    let _machine = beside_others().await;
    let nats = blocking(Nats::start);
    let mut service = Service::start_with(&backend, &with_commands(&nats.url())).await;
    let admin = service.client();
    admin.wait_for_health("broker", "connected").await;
    let bus = Bus::to_commands(&nats.url()).await;
    let (a, b) = (Tenant::of(&service, "acme").await, Tenant::of(&service, "bolt").await);
    let soon = now() + 2_000_000;
    for tenant in [&a, &b] {
        bus.schedule(tenant.namespace, "call", soon).await;
        bus.schedule(tenant.namespace, "kept", soon + 3_600_000_000).await;
    }
    eventually("all commands were carried out", SOON, async || {
        (admin.get("/timers").await.json()["data"]["total"] == 4).then_some(())
    })
    .await;
    let before = [a.everything().await, b.everything().await];
    assert_eq!(before.each_ref().map(Vec::len), [2, 2]);
    for (owner, other) in [(&a, &b), (&b, &a)] {
        for key in ["call", "kept"] {
            try_all(other, owner, &on_timer(owner, key, &owner.id(key).await)).await;
        }
    }
    // A command speaks for its tenant alone, and so does a cancel.
    let sooner = now();
    bus.schedule("acme", "kept", sooner).await;
    let mut events = bus.events();
    events.wait_for_event_of("kept", SOON).await;
    let canceled = b.cancel_matching(json!({"key_prefix": "kept"})).await.json();
    assert_eq!(canceled["data"]["canceled"], 1, "{canceled}");

    admin.wait_until_finished(SOON).await;
    bus.schedule("marker", "end", now()).await;
    let mut told: Vec<(String, String)> =
        events.wait_for_event_of("end", SOON).await.into_iter().map(|event| (event.tenant, event.call)).collect();
    told.sort_unstable();
    let expected = [("acme", "call"), ("acme", "kept"), ("bolt", "call"), ("marker", "end")];
    assert_eq!(told, expected.map(|(tenant, call)| (tenant.to_owned(), call.to_owned())));
    let kept = b.client.timer(&b.id("kept").await).await;
    assert_eq!(kept["status"], "canceled", "{kept}");
    service.stop().await;
}
