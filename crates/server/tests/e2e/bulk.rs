//! Changes of thousands of timers: each of them once, whatever happens to the service meanwhile.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::rig::{Backend, Client, Receiver, Service, eventually, for_each_store, heavy};

const TIMERS: usize = 2_000;
const OPERATION_TIME: Duration = Duration::from_secs(60);

for_each_store!(mariadb in soak:
    a_shift_that_is_killed_in_the_middle_moves_each_timer_once,
    a_stopped_operation_leaves_the_rest_alone,
    a_few_timers_are_changed_at_once_and_never_more_than_expected,
);

/// Creates timers that are due in an hour and more, one a second.
async fn create_many(client: &Client, count: usize) {
    let callback = json!({"type": "http", "url": "http://127.0.0.1:9/never"});
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(1_000) {
        let timers: Vec<Value> = batch
            .iter()
            .map(|n| json!({"delay": format!("{}s", 3600 + n), "key": format!("bulk-{n}"), "callback": callback}))
            .collect();
        let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

/// When each timer is due, with its revision, by key.
async fn all(client: &Client) -> HashMap<String, (String, u64)> {
    let (mut found, mut cursor) = (HashMap::new(), String::new());
    loop {
        let page = client.get(&format!("/timers?limit=200&order=asc{cursor}")).await.json()["data"].clone();
        for timer in page["timers"].as_array().expect("timers") {
            let text = |field: &str| timer[field].as_str().expect("a text").to_owned();
            found.insert(text("key"), (text("execute_at"), timer["revision"].as_u64().expect("a revision")));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn bulk(client: &Client, request: &Value) -> (u16, Value) {
    let answer = client.send("POST", "/timers/bulk", Some(request)).await;
    (answer.status, answer.json()["data"].clone())
}

fn shift(expected_max: usize) -> Value {
    json!({"action": "reschedule", "filter": {"status": "pending"}, "set": {"shift": "+1h"}, "expected_max": expected_max})
}

async fn operation(client: &Client, id: &str) -> Value {
    client.get(&format!("/operations/{id}")).await.json()["data"].clone()
}

async fn a_shift_that_is_killed_in_the_middle_moves_each_timer_once(backend: Backend) {
    let _machine = heavy().await;
    let mut service = Service::start(&backend).await;
    create_many(&service.client(), TIMERS).await;
    let before = all(&service.client()).await;
    let (status, started) = bulk(&service.client(), &shift(TIMERS)).await;
    assert_eq!(status, 202, "{started}");
    let id = started["operation"]["id"].as_str().expect("an id").to_owned();

    let mut kills = 0;
    for part in [1, 500, 1_200] {
        let client = service.client();
        let came_so_far = async || {
            let now = operation(&client, &id).await;
            (now["changed"].as_u64() >= Some(part) || now["state"] != "running").then_some(now)
        };
        let seen = eventually("the operation comes that far", OPERATION_TIME, came_so_far).await;
        if seen["state"] == "running" {
            service.kill();
            kills += 1;
            service.start_again().await;
        }
    }
    let client = service.client();
    let ended = eventually("the operation ends", OPERATION_TIME, async || {
        Some(operation(&client, &id).await).filter(|operation| operation["state"] != "running")
    })
    .await;
    println!("{}: a shift of {TIMERS} timers, killed {kills} times: {ended}", backend.name());
    assert!(kills > 0, "it was never killed while it ran");
    assert_eq!((&ended["state"], &ended["changed"], &ended["skipped"]), (&json!("done"), &json!(TIMERS), &json!(0)), "{ended}");
    let after = all(&client).await;
    assert_eq!(after.len(), TIMERS);
    for (key, (execute_at, revision)) in &after {
        let (was, first) = &before[key];
        let moved = crate::rig::micros(execute_at) - crate::rig::micros(was);
        assert_eq!((moved, *revision), (3_600_000_000, first + 1), "{key}");
    }
    service.stop().await;
}

async fn a_stopped_operation_leaves_the_rest_alone(backend: Backend) {
    let _machine = heavy().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    create_many(&client, TIMERS).await;
    let tenant = client.tenant("tenant").await;
    let (_, started) = bulk(&client, &shift(TIMERS)).await;
    let id = started["operation"]["id"].as_str().expect("an id").to_owned();
    // A tenant does not know of it, and stops nothing.
    assert_eq!(tenant.send("DELETE", &format!("/operations/{id}"), None).await.status, 404);
    assert_eq!(tenant.get(&format!("/operations/{id}")).await.status, 404);
    assert_eq!(tenant.get("/operations").await.json()["data"]["operations"], json!([]));
    let stopped = client.send("DELETE", &format!("/operations/{id}"), None).await.json()["data"].clone();
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    let changed = stopped["changed"].as_u64().expect("a number");
    assert!(changed < TIMERS as u64, "{stopped}");
    let moved = async || all(&client).await.values().filter(|(_, revision)| *revision == 2).count() as u64;
    assert_eq!(moved().await, changed, "what was acknowledged as stopped changes nothing more");
    let listed = client.get("/operations").await.json()["data"]["operations"].clone();
    assert_eq!(listed[0]["id"], json!(id));
    service.stop().await;
}

async fn a_few_timers_are_changed_at_once_and_never_more_than_expected(backend: Backend) {
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    create_many(&client, 50).await;
    let filter = json!({"status": ["pending"], "key_prefix": "bulk-1"});
    let (status, preview) = bulk(&client, &json!({"action": "pause", "filter": filter, "dry_run": true})).await;
    // bulk-1 and bulk-10 to bulk-19.
    assert_eq!((status, &preview["matched"], &preview["by_status"]["pending"]), (200, &json!(11), &json!(11)), "{preview}");
    let pause = |expected_max: u32| json!({"action": "pause", "filter": filter, "expected_max": expected_max});
    assert_eq!(bulk(&client, &pause(10)).await.0, 409);
    assert_eq!(client.count("paused").await, 0);
    assert_eq!(bulk(&client, &pause(11)).await, (200, json!({"changed": 11, "skipped": 0})));
    assert_eq!(client.count("paused").await, 11);
    let resume = json!({"action": "resume", "filter": {"status": "paused"}, "expected_max": 11});
    assert_eq!(bulk(&client, &resume).await, (200, json!({"changed": 11, "skipped": 0})));

    let callback = crate::rig::callback_to(&receiver.url("/bulk"), &json!(1));
    for n in 0..5 {
        client.create(&json!({"delay": "1h", "key": format!("fired-{n}"), "callback": callback})).await;
    }
    let fire = json!({"action": "fire", "filter": {"key_prefix": "fired-"}, "expected_max": 5});
    assert_eq!(bulk(&client, &fire).await, (200, json!({"changed": 5, "skipped": 0})));
    receiver.wait_for(5, Duration::from_secs(10)).await;
    let cancel = json!({"action": "cancel", "filter": {"status": "pending"}, "expected_max": 50});
    assert_eq!(bulk(&client, &cancel).await, (200, json!({"changed": 50, "skipped": 0})));
    client.wait_until_finished(Duration::from_secs(10)).await;
    let delete = json!({"action": "delete", "filter": {}, "expected_max": 55});
    assert_eq!(bulk(&client, &delete).await, (200, json!({"changed": 55, "skipped": 0})));
    let reader = client.with_key(&issued_reader(&client).await);
    let refused = reader.send("POST", "/timers/bulk", Some(&json!({"action": "cancel", "filter": {}, "dry_run": true}))).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    service.stop().await;
}

async fn issued_reader(client: &Client) -> String {
    let issued =
        client.send("POST", "/keys", Some(&json!({"name": "reader", "namespaces": ["default"], "rights": "read"}))).await;
    issued.json()["data"]["key"].as_str().expect("a key").to_owned()
}
