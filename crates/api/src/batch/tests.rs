use std::{sync::Arc, time::Duration};

use axum::body::Body;
use domain::ManualClock;
use futures_util::{future, stream};
use serde_json::{Value, json};
use store::Operation;
use store_testing::{Fault, Faulty, Model};
use tokio::time;

use crate::{
    Limits, limits,
    rig::{KEY, NOW, Reply, Rig, request},
};

const TIMER: &str = r#"{"delay":"1h","callback":{"type":"http","url":"http://a"}}"#;

async fn batch(rig: &Rig, timers: &[&str]) -> Reply {
    rig.call("POST", "/timers/batch", &format!(r#"{{"timers":[{}]}}"#, timers.join(","))).await
}

async fn results(rig: &Rig, timers: &[&str]) -> Vec<Value> {
    let reply = batch(rig, timers).await;
    assert_eq!((reply.status.as_u16(), reply.message().as_str()), (200, "success"), "{}", reply.text);
    reply.data("results").as_array().unwrap().clone()
}

fn keyed(rest: &str) -> String {
    format!(r#"{{"delay":"1h","callback":{{"type":"http","url":"http://a"}},"key":"k"{rest}}}"#)
}

#[tokio::test]
async fn each_timer_is_answered_for_itself_and_in_order() {
    let rig = Rig::new();
    let (first, other, replacing) = (keyed(""), keyed(r#","metadata":1"#), keyed(r#","metadata":2,"on_conflict":"replace""#));
    let timers = [
        (first.as_str(), 201, "timer created successfully", None),
        (r#"{"seconds":1,"url":"http://b"}"#, 201, "timer created successfully", None),
        (&first, 200, "timer already exists", None),
        (&other, 409, "a timer with this key exists and has other content", None),
        (&replacing, 200, "timer replaced successfully", None),
        ("7", 400, "the timer must be a JSON object", None),
        (r#"{"\ud800":1}"#, 400, "the timer is not valid JSON", None),
        ("{}", 400, "execute_at or delay is required", Some("execute_at")),
        (r#"{"delay":"1h","dealy":1}"#, 400, "'dealy' is not a known field", Some("dealy")),
        (r#"{"delay":"1h","callback":{"type":"http"}}"#, 400, "callback.url is required", Some("callback.url")),
        (r#"{"delay":"1s","callback":{"type":"http","url":"http://a"}}"#, 400, "delay must be at least 5s", Some("delay")),
        (r#"{"seconds":1,"url":"http://169.254.169.254"}"#, 400, "url must not reach a denied address", Some("url")),
        (TIMER, 201, "timer created successfully", None),
    ];
    let results = results(&rig, &timers.map(|(timer, ..)| timer)).await;
    assert_eq!(results.len(), timers.len());
    for (result, (timer, status, message, field)) in results.iter().zip(timers) {
        assert_eq!(result["status"], status, "{timer}: {result}");
        assert!(result["message"].as_str().unwrap().starts_with(message), "{timer}: {result}");
        assert_eq!(result.get("field"), field.map(Value::from).as_ref(), "{timer}");
        assert_eq!(result.get("timer").is_some(), status < 300, "{timer}");
    }
    assert_eq!(rig.count().await, 3);
    let id = results[1]["timer"]["id"].as_str().unwrap();
    let alone = rig.get(&format!("/timers/{id}")).await;
    for (name, value) in results[1]["timer"].as_object().unwrap() {
        assert_eq!(alone.data(name), *value, "{name}");
    }
    assert_eq!(alone.json()["data"]["callback_config"]["url"], format!("http://b/{id}"));
}

#[tokio::test]
async fn a_batch_is_one_commit() {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
    let rig = Rig::over(store.clone(), clock, Vec::new());
    let answers = results(&rig, &[TIMER; 1000]).await;
    assert!(answers.iter().all(|answer| answer["status"] == 201));
    assert_eq!((store.calls(Operation::Create), rig.count().await), (1, 1000));
}

#[tokio::test]
async fn a_store_that_is_away_is_said_of_each_and_gives_nothing_away() {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
    let rig = Rig::over(store.clone(), clock, Vec::new());
    store.plan(Operation::Create, Fault::NotDone);
    let message = "the store is not available and nothing was changed: try again later";
    let reply = batch(&rig, &[TIMER, "{}"]).await;
    assert_eq!(
        reply.data("results"),
        json!([
            {"status": 503, "message": message},
            {"status": 400, "message": "execute_at or delay is required", "field": "execute_at"},
        ])
    );
    assert!(!reply.text.contains("planned"));
    assert_eq!(rig.count().await, 0);
}

#[tokio::test]
async fn every_bad_batch_is_refused_as_a_whole() {
    let rig = Rig::new();
    let too_many = format!(r#"{{"timers":[{}]}}"#, [TIMER; 1001].join(","));
    let many_names: Vec<String> = (0..100_000).map(|_| r#""timers":[]"#.to_owned()).collect();
    for (body, message) in [
        ("[]", "the body must be a JSON object"),
        ("{}", "timers is required"),
        (r#"{"timers":[]}"#, "timers must have 1 to 1000 elements"),
        (&too_many, "timers must have 1 to 1000 elements"),
        (r#"{"timers":null}"#, "timers must be an array"),
        (r#"{"timers":{}}"#, "timers must be an array"),
        (&format!(r#"{{"timers":[{TIMER}],"atomic":true}}"#), "'atomic' is not a known field"),
        (&format!(r#"{{"timers":[{TIMER}],"timers":[{TIMER}]}}"#), "timers must not be given twice"),
        (&format!("{{{}}}", many_names.join(",")), "timers must not be given twice"),
    ] {
        assert_eq!(rig.call("POST", "/timers/batch", body).await.refused(400, 2), message);
    }
    let reply = rig.call("POST", "/timers/batch", &format!(r#"{{"timers":[{TIMER},]}}"#)).await;
    assert!(reply.refused(400, 2).starts_with("the body is not valid JSON"), "{}", reply.text);
    assert_eq!(rig.count().await, 0);
}

#[tokio::test]
async fn a_batch_may_have_eight_mebibytes_and_no_more() {
    let rig = Rig::new();
    let body = format!(r#"{{"timers":[{TIMER}]}}"#);
    let filled = |bytes: usize| format!("{body}{}", " ".repeat(bytes - body.len()));
    assert_eq!(rig.call("POST", "/timers/batch", &filled(limits::BATCH_BYTES_MAX)).await.status, 200);
    let reply = rig.call("POST", "/timers/batch", &filled(limits::BATCH_BYTES_MAX + 1)).await;
    assert_eq!(reply.refused(413, 2), "the body must not be larger than 8 MiB");
}

#[tokio::test(start_paused = true)]
async fn one_key_holds_half_of_the_batches_and_others_are_taken_meanwhile() {
    let body_time_max = Duration::from_secs(15);
    let rig = Rig::limited(Limits { body_time_max, ..Limits::default() });
    let key = rig.issued("null", "write").await;
    let batch_at = async |secs, key: &str, body| {
        time::sleep(Duration::from_secs(secs)).await;
        let mut request = request("POST", "/timers/batch", "{}");
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        *request.body_mut() = body;
        rig.send(request).await
    };
    let never = || Body::from_stream(stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    let timer = || Body::from(format!(r#"{{"timers":[{TIMER}]}}"#));
    // The first hold every permit that one key gets until they are given up at 15 s, and those behind them then do until 30 s.
    let half = limits::BATCHES_AT_ONCE_MAX / 2;
    let holding = future::join_all((0..half).map(|_| batch_at(0, KEY, never())));
    let behind = future::join_all((0..half).map(|_| batch_at(1, KEY, never())));
    let of_another = time::timeout(Duration::from_secs(3), batch_at(2, &key, timer()));
    let (holding, behind, of_another, refused, taken) =
        tokio::join!(holding, behind, of_another, batch_at(2, KEY, timer()), batch_at(20, KEY, timer()));
    assert!(holding.iter().chain(&behind).all(|reply| reply.status == 408));
    assert_eq!(of_another.unwrap().status, 200);
    assert_eq!(refused.refused(503, 1), "too many batches at the same time, and nothing was changed: try again later");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!((taken.status.as_u16(), rig.count().await), (200, 2));
}
