//! Compare-and-set, timers by their own key, and ids that clients choose: on the real binary, with clients that race each other and
//! the claim.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{
    Answer, Backend, Client, Receiver, Service, beside_others, callback_to, for_each_store, instant, now, wait_for_wall,
};

for_each_store!(
    of_many_clients_that_change_one_revision_one_succeeds,
    a_change_of_one_revision_is_before_the_call_or_refused,
    a_timer_is_found_and_changed_by_its_own_key,
    a_chosen_id_makes_a_create_safe_to_repeat_and_tells_nothing_of_other_tenants,
);

const ROUNDS: usize = 20;
const CLIENTS: usize = 6;
/// How many changes meet the claim of their timer.
const RACES: i64 = 60;
const LEAD_MICROS: i64 = 3_000_000;
const BETWEEN_MICROS: i64 = 5_000;
/// How far from the due time a change is sent, to both sides.
const AROUND_MICROS: i64 = 50_000;
/// One in so many is sent long before the due time, and one long after it: each side wins some, however busy the machine is.
const CERTAIN_ONE_IN: i64 = 20;
const CERTAIN_MICROS: i64 = 1_500_000;

async fn expecting(client: &Client, method: &str, path: &str, body: &str, if_match: &str) -> Answer {
    let mut request = client.request(method, path).header("x-api-key", client.key()).header("if-match", if_match);
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    client.send_raw(request, body.to_owned()).await.expect("an answer")
}

async fn of_many_clients_that_change_one_revision_one_succeeds(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    for round in 0..ROUNDS {
        let id = client.create(&json!({"delay": "1h", "callback": callback_to("http://127.0.0.1:9/", &json!(1))})).await;
        let path = format!("/timers/{id}");
        let changes = (0..CLIENTS).map(|n| {
            let (client, path) = (client.clone(), path.clone());
            async move {
                // One of them cancels.
                match n == round % CLIENTS {
                    true => expecting(&client, "DELETE", &path, "", "\"1\"").await,
                    false => expecting(&client, "PUT", &path, &json!({"metadata": n}).to_string(), "\"1\"").await,
                }
            }
        });
        let answers = join_all(changes).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "{answers:?}");
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            // What comes after the cancel meets the same revision, and a timer that has ended.
            let (status, message) = (refused.status, refused.json()["message"].clone());
            let is_stale = status == 412 && message == "timer has revision 2, not 1";
            let is_ended = status == 400 && message == "cannot update timer with status 'canceled'";
            assert!(is_stale || is_ended, "{refused:?}");
        }
    }
    service.stop().await;
}

async fn a_change_of_one_revision_is_before_the_call_or_refused(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s")]).await;
    let client = service.client();
    let first = now() + LEAD_MICROS;
    let races = (0..RACES).map(|n| {
        let (client, url) = (client.clone(), receiver.url("/race"));
        async move {
            let at = first + n * BETWEEN_MICROS;
            let id = client.create(&json!({"execute_at": instant(at), "callback": callback_to(&url, &json!("old"))})).await;
            let offset = match n % CERTAIN_ONE_IN {
                0 => -CERTAIN_MICROS,
                1 => CERTAIN_MICROS,
                _ => (n - RACES / 2) * AROUND_MICROS / (RACES / 2),
            };
            wait_for_wall(at + offset).await;
            let new = json!({"delay": "1ms", "callback": callback_to(&url, &json!("new"))}).to_string();
            let answer = expecting(&client, "PUT", &format!("/timers/{id}"), &new, "\"1\"").await;
            (id, answer)
        }
    });
    let answers = join_all(races).await;
    client.wait_until_finished(Duration::from_secs(20)).await;
    let (mut changed, mut refused) = (0, 0);
    for (id, answer) in &answers {
        let of_this = |call: &crate::rig::Call| call.header("x-timer-id") == id;
        let called: Vec<Value> = receiver.calls().iter().filter(|call| of_this(call)).map(crate::rig::Call::json).collect();
        match answer.status {
            200 => {
                changed += 1;
                assert_eq!(called, ["new"], "{id}");
            }
            400 => {
                refused += 1;
                assert_eq!(called, ["old"], "{id}: {}", answer.text);
            }
            other => panic!("{other}: {}", answer.text),
        }
    }
    println!("{}: {changed} changes came before the claim, {refused} after it", backend.name());
    assert!(changed > 0 && refused > 0, "no race: {changed} changed, {refused} refused");
    service.stop().await;
}

async fn a_timer_is_found_and_changed_by_its_own_key(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let key = "orders/2030 é?#%";
    let callback = callback_to("http://127.0.0.1:9/", &json!(1));
    let id = client.create(&json!({"delay": "1h", "namespace": "shop a", "key": key, "callback": callback})).await;
    let path = "/namespaces/shop%20a/timers/orders%2F2030%20%C3%A9%3F%23%25";
    let found = client.get(path).await;
    let shown = found.json()["data"].clone();
    assert_eq!((found.status, &shown["id"], &shown["key"], &shown["revision"]), (200, &json!(id), &json!(key), &json!(1)));
    assert_eq!(found.headers["etag"], "\"1\"");
    let changed = expecting(&client, "PUT", path, r#"{"metadata":{"a":1}}"#, "\"1\"").await;
    assert_eq!((changed.status, &changed.headers["etag"]), (200, &"\"2\"".parse().expect("a tag")), "{}", changed.text);
    let stale = expecting(&client, "DELETE", path, "", "\"1\"").await;
    assert_eq!((stale.status, &stale.json()["code"]), (412, &json!(6)), "{}", stale.text);
    for garbage in ["abc", "W/\"2\"", "\"1\", \"2\"", "2"] {
        let refused = expecting(&client, "DELETE", path, "", garbage).await;
        let message = refused.json()["message"].clone();
        assert!(refused.status == 400 && message.as_str().is_some_and(|text| text.starts_with("If-Match ")), "{}", refused.text);
    }
    let tenant = client.tenant("shop b").await;
    for (method, rest) in [("GET", ""), ("DELETE", ""), ("POST", "/fire"), ("POST", "/retry"), ("GET", "/attempts")] {
        assert_eq!(tenant.send(method, &format!("{path}{rest}"), None).await.status, 404, "{method} {rest}");
    }
    assert_eq!(client.get(&format!("{path}/attempts")).await.json()["data"]["attempts"], json!([]));
    assert_eq!(client.send("DELETE", path, None).await.json()["data"]["status"], "canceled");
    assert_eq!(client.get(&format!("/timers/{id}")).await.json()["data"]["status"], "canceled");
    service.stop().await;
}

async fn a_chosen_id_makes_a_create_safe_to_repeat_and_tells_nothing_of_other_tenants(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (one, other) = (client.tenant("a").await, client.tenant("b").await);
    let timer = |n: usize, namespace: &str, payload: &Value| {
        let id = format!("01890a5d-ac96-774b-bcce-{n:012x}");
        json!({"delay": "1h", "namespace": namespace, "id": id, "callback": callback_to("http://127.0.0.1:9/", payload)})
    };
    // The same request from many connections at once, as a client repeats it that got no answer.
    for n in 0..ROUNDS {
        let wanted = timer(n, "a", &json!(n));
        let answers = join_all((0..CLIENTS).map(|_| one.send("POST", "/timers", Some(&wanted)))).await;
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!((created, answers.iter().filter(|answer| answer.status == 200).count()), (1, CLIENTS - 1), "{answers:?}");
        assert!(answers.iter().all(|answer| answer.json()["data"]["id"] == wanted["id"]));
        for (client, taken) in [(&one, timer(n, "a", &json!("else"))), (&other, timer(n, "b", &json!(n)))] {
            let refused = client.send("POST", "/timers", Some(&taken)).await;
            let (code, message) = (refused.json()["code"].clone(), refused.json()["message"].clone());
            assert_eq!((refused.status, code), (409, json!(6)), "{}", refused.text);
            assert_eq!(
                (message, refused.json()["data"].clone()),
                (json!("a timer with this id exists and has other content"), Value::Null)
            );
        }
    }
    // Beside others in one batch, nothing else is hindered.
    let batch = json!({"timers": [timer(0, "a", &json!(0)), timer(0, "a", &json!(1)), timer(99, "a", &json!(1))]});
    let results = one.send("POST", "/timers/batch", Some(&batch)).await.json()["data"]["results"].clone();
    let statuses: Vec<_> = results.as_array().expect("results").iter().map(|result| result["status"].clone()).collect();
    assert_eq!(statuses, [200, 409, 201]);
    assert_eq!(client.count("pending").await, ROUNDS as u64 + 1);
    service.stop().await;
}
