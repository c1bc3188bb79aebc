//! `RATE_LIMIT`: how often one key may ask, told from outside.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{
    API_KEY, Answer, Backend, Client, Receiver, Service, beside_others, callback_to, for_each_store, instant, now, tolerated,
};

const SOON: Duration = Duration::from_secs(15);
const BURST: u64 = 10;
const LATENESS_SECONDS_MAX: f64 = 1.0;

for_each_store!(a_key_that_asks_too_often_waits_and_no_other_key_does, each_timer_of_a_batch_counts, firing_is_not_rationed);

/// One request a second, and ten after a pause.
async fn start(backend: &Backend) -> Service {
    Service::start_with(backend, &[("MIN_DELAY", "0s"), ("RATE_LIMIT", "1"), ("RATE_LIMIT_BURST", &BURST.to_string())]).await
}

fn timer(url: &str, at: &str, n: u64) -> Value {
    json!({"execute_at": at, "namespace": "acme", "key": n.to_string(), "callback": callback_to(url, &json!(n))})
}

/// Asks until it is refused; how often it was not, and the refusal.
async fn exhaust(client: &Client, path: &str) -> (u64, Answer) {
    exhaust_by(client, "GET", path, None).await
}

async fn exhaust_by(client: &Client, method: &str, path: &str, body: Option<&Value>) -> (u64, Answer) {
    for answered in 0..10 * BURST {
        let answer = client.send(method, path, body).await;
        if answer.status == 429 {
            return (answered, answer);
        }
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    panic!("{path} is never refused");
}

/// How long a refusal says to wait.
fn wait_of(refusal: &Answer) -> Duration {
    let seconds = refusal.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or_else(|| panic!("whole seconds in {refusal:?}")))
}

async fn a_key_that_asks_too_often_waits_and_no_other_key_does(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = start(&backend).await;
    let admin = service.client();
    let (acme, bolt) = (admin.tenant("acme").await, admin.tenant("bolt").await);

    let begun = tokio::time::Instant::now();
    let (answered, refusal) = exhaust(&acme, "/timers").await;
    let filled = begun.elapsed().as_secs();
    assert!((BURST..=BURST + filled + 1).contains(&answered), "{answered} in {filled} s");
    assert_eq!(
        (refusal.json()["code"].as_i64(), refusal.message().as_str()),
        (Some(5), "too many requests with this key: see the Retry-After header")
    );
    assert_eq!(wait_of(&refusal), Duration::from_secs(1));

    // In every API, and for what would have been refused for another reason.
    for (method, path) in [
        ("GET", "/api/v1/timers/acme/k"),
        ("POST", "/api/v1/timers/get"),
        ("DELETE", "/timers/no-id"),
        ("POST", "/timers/bulk"),
        ("GET", "/timers.csv"),
        ("GET", "/events"),
        ("GET", "/keys"),
        ("GET", "/nowhere"),
    ] {
        exhaust(&acme, "/timers").await;
        let refused = acme.send(method, path, None).await;
        assert_eq!(refused.status, 429, "{method} {path}: {}", refused.text);
        assert!(wait_of(&refused) <= Duration::from_secs(1), "{refused:?}");
        if path.starts_with("/api/v1") {
            assert_eq!(refused.json()["error"], "TOO_MANY_REQUESTS", "{}", refused.text);
        }
    }
    // What is about many timers counts as one request.
    let dry_run = json!({"action": "cancel", "filter": {}, "dry_run": true});
    for (namespace, method, path, body) in
        [("corp", "GET", "/timers.csv", None), ("dart", "POST", "/timers/bulk", Some(&dry_run))]
    {
        let client = admin.tenant(namespace).await;
        let begun = tokio::time::Instant::now();
        let (answered, _) = exhaust_by(&client, method, path, body).await;
        let filled = begun.elapsed().as_secs();
        assert!((BURST..=BURST + filled + 1).contains(&answered), "{path}: {answered} in {filled} s");
    }
    // What needs no key is not counted, a wrong key is wrong, and other clients do not notice.
    for path in ["/healthz", "/ping", "/metrics", "/openapi.json", "/docs"] {
        assert_eq!(acme.get(path).await.status, 200, "{path}");
    }
    assert_eq!(acme.with_key("wrong").get("/timers").await.status, 401);
    assert_eq!((bolt.get("/timers").await.status, admin.get("/timers").await.status), (200, 200));

    // Refusals cost nothing: a client that waits as told is let in.
    for _ in 0..3 {
        let (_, refusal) = exhaust(&acme, "/timers").await;
        tokio::time::sleep(wait_of(&refusal)).await;
        let answer = acme.get("/timers").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    // The administrator has a limit, too, and it is another one.
    let (_, refusal) = exhaust(&admin, "/timers").await;
    assert_eq!((refusal.status, bolt.get("/timers").await.status), (429, 200));
    service.stop().await;
}

async fn each_timer_of_a_batch_counts(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = start(&backend).await;
    let acme = service.client().tenant("acme").await;
    let size = BURST + 2;
    // One in the middle is refused, and counts like the others.
    let mut timers: Vec<Value> = (0..size).map(|n| timer("http://127.0.0.1:1/", "2099-01-01T00:00:00Z", n)).collect();
    timers[1] = json!({});
    let begun = tokio::time::Instant::now();
    let made = acme.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_eq!(made.json()["data"]["results"].as_array().map(Vec::len), Some(size as usize));
    let refusal = acme.get("/timers").await;
    // Two more than there were are owed, and one must be there again.
    assert_eq!(refusal.status, 429, "{}", refusal.text);
    let wait = wait_of(&refusal);
    assert!(wait + begun.elapsed() >= Duration::from_secs(3) && wait <= Duration::from_secs(3), "{wait:?}");
    tokio::time::sleep(wait - Duration::from_secs(1)).await;
    let early = begun.elapsed() < Duration::from_millis(2_900);
    let answer = acme.get("/timers").await;
    assert!(!early || answer.status == 429, "a second too early: {}", answer.text);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listed = acme.get("/timers").await;
    assert_eq!((listed.status, listed.json()["data"]["total"].as_u64()), (200, Some(size - 1)), "{}", listed.text);
    service.stop().await;
}

async fn firing_is_not_rationed(backend: Backend) {
    const TIMERS: u64 = 100;
    let _machine = beside_others().await;
    let mut service = start(&backend).await;
    let acme = service.client().tenant("acme").await;
    let receiver = Receiver::start();
    let at = now() + 4_000_000;
    let timers: Vec<Value> = (0..TIMERS).map(|n| timer(&receiver.url("/"), &instant(at), n)).collect();
    let made = acme.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert!(now() < at, "registered too late to mean anything");
    let refusal = acme.get("/timers").await;
    assert!(refusal.status == 429 && wait_of(&refusal) > Duration::from_secs(60), "{refusal:?}");

    let calls = receiver.wait_for(TIMERS as usize, SOON).await;
    for call in &calls {
        let late = (call.arrived - at) as f64 / 1e6;
        assert!((0.0..tolerated(LATENESS_SECONDS_MAX)).contains(&late), "{late} s late");
    }
    assert_eq!((calls.len(), acme.get("/timers").await.status), (TIMERS as usize, 429));
    assert_eq!(acme.with_key(API_KEY).get("/timers?status=completed&limit=1").await.status, 200);
    service.stop().await;
}
