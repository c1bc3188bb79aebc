//! What `timer dev` has for tests: its inbox, answers that can be programmed, and a clock that can be moved.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::rig::{Backend, Client, beside_others, micros, timer, tolerated};

/// A `timer dev` that ends with the test, and what it said when it was ready.
struct Dev {
    child: Child,
    client: Client,
    ready: Value,
}

impl Drop for Dev {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Dev {
    fn start(backend: &Backend, settings: &[(&str, &str)]) -> Self {
        let mut command = timer(backend.home());
        command.args(["dev", "--ready-json", "--port", "0"]).envs(settings.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("a line of JSON");
        let port = ready["url"].as_str().and_then(|url| url.rsplit_once(':')?.1.parse().ok()).expect("a URL with a port");
        let client = Client::new(port).with_key(ready["api_key"].as_str().expect("a key"));
        Self { child, client, ready }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.ready["receiver"].as_str().expect("a receiver"))
    }

    /// Registers a timer that calls the receiver.
    async fn create(&self, delay: &str, path: &str, more: Value) -> String {
        let mut timer = json!({"delay": delay, "callback": {"type": "http", "url": self.url(path), "payload": {"n": 1}}});
        timer.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        self.client.create(&timer).await
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.client.send(method, path, Some(&body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"].clone()
    }

    async fn advance(&self, by: Value) -> Value {
        self.send("POST", "/dev/clock/advance", by).await
    }

    async fn inbox(&self, query: &str) -> Vec<Value> {
        let answer = self.client.get(&format!("/dev/inbox?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"]["calls"].as_array().expect("calls").clone()
    }
}

fn texts<'a>(calls: &'a [Value], member: &str) -> Vec<&'a str> {
    calls.iter().map(|call| call[member].as_str().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reminder_in_thirty_days_with_retries_is_tested_at_once() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let dev = Dev::start(&backend, &[]);
    assert_eq!(dev.ready["console"], format!("{}/console", dev.ready["url"].as_str().expect("a URL")));
    let answers = json!({"answers": [
        {"path": "/reminder", "status": 503, "times": 2},
        {"path": "/busy", "status": 429, "headers": {"Retry-After": "600"}, "times": 1},
        {"path": "/expires", "status": 500},
    ]});
    assert_eq!(dev.send("PUT", "/dev/inbox/answers", answers).await["answers"], 3);
    let retries = json!({"max_retries": 3, "initial_interval": "1h", "max_interval": "1d"});
    let reminder = dev.create("30d", "/reminder", json!({"retry_policy": retries})).await;
    let done = json!({"type": "http", "url": dev.url("/done")});
    let busy = dev.create("10d", "/busy", json!({"retry_policy": retries, "on_success": done})).await;
    let late = json!({"expires_after": "30m", "retry_policy": retries});
    let expires = dev.create("20d", "/expires", late).await;
    let later = dev.create("40d", "/later", json!({})).await;

    let advanced = dev.advance(json!({"by": "31d"})).await;
    // The reminder three times, the busy one twice, its follow-up, and the one that expires while it waits for its retry.
    assert_eq!(advanced["fired"], 7, "{advanced}");
    assert_eq!(
        (&advanced["completed"], &advanced["failed"], &advanced["expired"], &advanced["pending"], &advanced["complete"]),
        (&json!(3), &json!(0), &json!(1), &json!(1), &json!(true)),
        "{advanced}"
    );
    let calls = dev.inbox("").await;
    assert_eq!(
        texts(&calls, "path"),
        ["/busy", "/busy", "/done", "/expires", "/reminder", "/reminder", "/reminder"],
        "everything in order"
    );
    let times: Vec<_> = texts(&calls, "at").into_iter().map(micros).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times[1] - times[0] >= 600_000_000, "Retry-After is honoured by the clock that was moved");
    assert!(times[5] - times[4] > 3_000_000_000, "an hour, less the jitter");
    for (id, status) in [(&reminder, "completed"), (&busy, "completed"), (&expires, "expired"), (&later, "pending")] {
        assert_eq!(dev.client.timer(id).await["status"], status);
    }
    let of_reminder = dev.inbox(&format!("timer={reminder}")).await;
    assert_eq!(of_reminder.iter().map(|call| call["attempt"].as_u64().unwrap_or(0)).collect::<Vec<_>>(), [1, 2, 3]);
    for call in &of_reminder {
        assert_eq!((&call["signature_valid"], &call["body"]), (&json!(true), &json!(r#"{"n":1}"#)), "{call}");
    }
    assert_eq!(of_reminder[2]["duplicate_of"], of_reminder[0]["seq"]);

    // The one that is left, alone; then nothing is.
    let advanced = dev.advance(json!({"until": "next"})).await;
    assert_eq!((&advanced["fired"], &advanced["pending"], &advanced["next"]), (&json!(1), &json!(0), &Value::Null));
    let advanced = dev.advance(json!({"until": "idle"})).await;
    assert_eq!((&advanced["fired"], &advanced["complete"]), (&json!(0), &json!(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_moved_goes_on_and_calls_are_waited_for() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let dev = Dev::start(&backend, &[("SIGNING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]);
    assert_eq!(dev.ready["signing_secret"], "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let mut events = dev.client.follow("types=finished", None).await.unwrap_or_else(|answer| panic!("{}", answer.text));
    let year = dev.advance(json!({"by": "365d"})).await;
    assert_eq!(dev.client.get("/healthz").await.status, 200);

    // By the moved clock, in real time.
    let id = dev.create("1s", "/live", json!({})).await;
    let calls = dev.inbox(&format!("timer={id}&wait=10s")).await;
    assert_eq!((calls.len(), &calls[0]["signature_valid"]), (1, &json!(true)), "{calls:?}");
    assert!(calls[0]["lateness_ms"].as_i64().is_some_and(|late| (0..5_000).contains(&late)), "{calls:?}");
    assert!(texts(&calls, "at")[0] > year["now"].as_str().unwrap_or_default());
    let finished = async {
        loop {
            let event = events.recv().await.expect("an event");
            if event["type"] == "finished" {
                return event;
            }
        }
    };
    let finished = tokio::time::timeout(tolerated(Duration::from_secs(10)), finished).await.expect("an event in time");
    assert_eq!(finished["timer"]["id"], id.as_str());

    // A receiver that hangs holds the clock up for as long as the call may take.
    dev.send("PUT", "/dev/inbox/answers", json!({"answers": [{"path": "/hangs", "hang": true}]})).await;
    let hangs = json!({"delay": "1h", "callback": {"type": "http", "url": dev.url("/hangs"), "timeout": "2s"}});
    dev.client.create(&hangs).await;
    let waited = dev.advance(json!({"by": "2h", "timeout": "100ms"})).await;
    assert_eq!((&waited["complete"], &waited["fired"]), (&json!(false), &json!(0)), "{waited}");
    let waited = dev.advance(json!({"until": "idle"})).await;
    assert_eq!((&waited["complete"], &waited["failed"], &waited["pending"]), (&json!(true), &json!(1), &json!(0)), "{waited}");

    assert_eq!(dev.send("DELETE", "/dev/inbox", Value::Null).await["deleted"], 2);
    assert_eq!(dev.inbox("").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_database_server_cannot_be_moved() {
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let dev = Dev::start(&backend, &[("DATABASE_URL", backend.url())]);
    let refused = dev.client.send("POST", "/dev/clock/advance", Some(&json!({"by": "1d"}))).await;
    assert_eq!((refused.status, refused.json()["code"].as_u64()), (400, Some(2)), "{}", refused.text);
    let id = dev.create("10ms", "/now", json!({})).await;
    assert_eq!(dev.inbox(&format!("timer={id}&wait=10s")).await.len(), 1);
}
