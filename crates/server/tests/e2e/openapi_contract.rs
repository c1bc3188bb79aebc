//! The API keeps to its own description: schemathesis makes requests of every kind from `/openapi.json`, right ones and wrong ones,
//! and judges each answer by it.

use std::time::Duration;

use serde_json::{Value, json};
use throwaway::Nats;

use crate::rig::{
    API_KEY, Backend, Client, Receiver, Reply, Service, beside_others, beside_the_tests, blocking, by_tier, callback_to,
    eventually, python,
};

const SOON: Duration = Duration::from_secs(15);
/// Less would mean that most of the description was not understood.
const REQUESTS_MIN: u64 = 2_500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_as_the_openapi_document_says() {
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let nats = blocking(Nats::start);
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("NATS_URL", &nats.url()), ("ATTEMPTS", "all")]).await;
    let client = service.client();
    client.wait_for_health("nats", "connected").await;
    one_of_each_status(&client).await;
    keep_from_firing(&backend, &client).await;
    let (claimed_before, requests_before) = (claimed(&client).await, requests(&client).await);

    let schema = format!("http://127.0.0.1:{}/openapi.json", service.port());
    let mut schemathesis = python("openapi_contract");
    schemathesis.current_dir(backend.home()).args(["-m", "try_api", "--no-color", "--config-file"]);
    schemathesis.arg(beside_the_tests("openapi_contract/schemathesis.toml")).args(["run", &schema]);
    // A stream that does not end is no answer that it could judge.
    schemathesis.args(["--exclude-path", "/events"]);
    schemathesis.args(["--max-examples", by_tier("100", "3")]);
    schemathesis.args(["--header", &format!("X-API-Key: {API_KEY}")]);
    let output = blocking(|| schemathesis.output().expect("Python runs"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    // Nothing of what it registered has been called, and all that it should try was tried.
    assert_eq!(claimed(&client).await, claimed_before, "no timer has fired");
    let (made, operations) = (requests(&client).await - requests_before, operations(&client).await);
    let tried = operations - 1;
    let tested = format!("Selected: {tried}/{operations}\n  Tested: {tried}\n");
    assert!(said.contains(&tested), "{operations} operations\n{said}");
    assert!(made >= REQUESTS_MIN, "only {made} requests\n{said}");
    println!("{made} requests to {operations} operations; every answer was as described");
    service.stop().await;
}

/// So that lists and details have more to show than what waits.
async fn one_of_each_status(client: &Client) {
    let receiver = Receiver::replying(|call| Reply::Status(if call.json() == json!("refused") { 503 } else { 200 }));
    for (payload, status) in [("taken", "completed"), ("refused", "failed")] {
        let callback = callback_to(&receiver.url("/"), &json!(payload));
        let id = client.create(&json!({"delay": "0s", "key": payload, "metadata": {"n": 1.10}, "callback": callback})).await;
        client.wait_for_status(&id, status).await;
    }
    let id = client.create(&json!({"delay": "1h", "callback": callback_to(&receiver.url("/"), &json!(1))})).await;
    assert_eq!(client.try_cancel(&id).await.expect("an answer").status, 200);
}

/// Gives every shard to a node that does not exist and yet lives for a day. The service answers requests as before and calls no receiver:
/// the addresses that will be registered from here on are made up and must not be dialled.
async fn keep_from_firing(backend: &Backend, client: &Client) {
    let another = "INSERT INTO node (id, started_at, skew_micros, lease_until, takes_shards, name, version)
        SELECT '00000000-0000-0000-0000-000000000001', 0, 0, (extract(epoch FROM now()) * 1e6)::bigint + 86400000000, true, 'no', '0';
        UPDATE shard SET owner = '00000000-0000-0000-0000-000000000001', epoch = epoch + 1";
    backend.execute(another);
    eventually("the service has no shard", SOON, async || {
        (client.get("/healthz").await.json()["data"]["shards"] == 0).then_some(())
    })
    .await;
    // Were it not so, this one would be claimed while requests are made.
    let at_once = json!({"delay": "0s", "callback": callback_to("http://127.0.0.1:9/", &json!(1))});
    client.create(&at_once).await;
}

/// How many timers were ever claimed for a call.
async fn claimed(client: &Client) -> u64 {
    client.metric("timer_claims_total").await.expect("timers that have fired") as u64
}

/// All of the document except itself, which schemathesis leaves out.
async fn operations(client: &Client) -> usize {
    let document = client.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    let methods =
        |path: &Value| ["get", "put", "post", "delete", "patch"].iter().filter(|method| path.get(method).is_some()).count();
    paths.iter().filter(|(path, _)| *path != "/openapi.json").map(|(_, operations)| methods(operations)).sum()
}

/// How many requests the service has answered.
async fn requests(client: &Client) -> u64 {
    let metrics = client.get("/metrics").await.text;
    let counts = metrics.lines().filter(|line| line.starts_with("timer_http_requests_total{"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
}
