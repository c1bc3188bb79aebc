use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{API_KEY, tolerated};

/// Longer than any answer may take: `/healthz` has five seconds when the store hangs.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A caller of one service, with connections that are kept open. Clones share them.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    base: String,
    key: String,
}

/// The connection was lost, or no answer came: whether the request was carried out is unknown.
#[derive(Debug)]
pub struct Lost;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Client {
    pub fn new(port: u16) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Self { http, base: format!("http://127.0.0.1:{port}"), key: API_KEY.to_owned() }
    }

    /// A service whose every path begins with this.
    pub fn under(port: u16, base_path: &str) -> Self {
        Self { base: format!("http://127.0.0.1:{port}{base_path}"), ..Self::new(port) }
    }

    /// The same service, asked with another key than the administrator's.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Issues a key for this namespace; a client that shows it.
    pub async fn tenant(&self, namespace: &str) -> Self {
        let wanted = json!({"name": namespace, "namespaces": [namespace], "rights": "write"});
        let issued = self.send("POST", "/keys", Some(&wanted)).await;
        assert_eq!(issued.status, 201, "{}", issued.text);
        self.with_key(issued.json()["data"]["key"].as_str().expect("a key"))
    }

    /// The request exactly as given.
    pub async fn send_raw(&self, request: http::request::Builder, body: impl Into<Bytes>) -> Result<Answer, Lost> {
        let request = request.body(Full::new(body.into())).expect("a valid request");
        let exchange = async {
            let response = self.http.request(request).await.map_err(|_| Lost)?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
            let text = String::from_utf8(body.into()).expect("answers are UTF-8");
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, text })
        };
        tokio::time::timeout(tolerated(TIMEOUT), exchange).await.unwrap_or(Err(Lost))
    }

    /// The headers and the body of an answer that need not be text.
    pub async fn send_for_bytes(&self, request: http::request::Builder) -> (HeaderMap, Bytes) {
        let request = request.body(Full::new(Bytes::new())).expect("a valid request");
        let response = self.http.request(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        (head.headers, body.collect().await.expect("a whole body").to_bytes())
    }

    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.base))
    }

    pub async fn try_send(&self, method: &str, path: &str, body: Option<String>) -> Result<Answer, Lost> {
        let mut request = self.request(method, path).header("x-api-key", &self.key);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        self.send_raw(request, body.unwrap_or_default()).await
    }

    /// Follows `/events` with this query, from after the id of an event if there is one: the events as they come. The channel ends with the
    /// stream.
    pub async fn follow(&self, query: &str, after: Option<&str>) -> Result<mpsc::Receiver<Value>, Answer> {
        let request = self.request("GET", &format!("/events?{query}")).header("x-api-key", &self.key);
        let request = request.header("accept", "application/x-ndjson").header("last-event-id", after.unwrap_or_default());
        let request = request.body(Full::default()).expect("a valid request");
        let response = tokio::time::timeout(tolerated(TIMEOUT), self.http.request(request)).await;
        let (head, mut body) = response.expect("an answer in time").expect("an answer").into_parts();
        if head.status != 200 {
            let text = String::from_utf8(body.collect().await.expect("a body").to_bytes().into()).expect("answers are UTF-8");
            return Err(Answer { status: head.status.as_u16(), headers: head.headers, text });
        }
        // One that is not read holds the stream up.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                held.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = held.drain(..=end).collect();
                    let event = serde_json::from_slice(&line).expect("a line of JSON");
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(receiver)
    }

    /// A request that must be answered, however.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let answer = self.try_send(method, path, body.map(Value::to_string)).await;
        answer.unwrap_or_else(|_| panic!("{method} {path} got no answer"))
    }

    pub async fn try_create(&self, timer: &Value) -> Result<Answer, Lost> {
        self.try_send("POST", "/timers", Some(timer.to_string())).await
    }

    pub async fn try_update(&self, id: &str, patch: &Value) -> Result<Answer, Lost> {
        self.try_send("PUT", &format!("/timers/{id}"), Some(patch.to_string())).await
    }

    pub async fn try_cancel(&self, id: &str) -> Result<Answer, Lost> {
        self.try_send("DELETE", &format!("/timers/{id}"), None).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    /// The text as the body: for content that must not go through a JSON value.
    pub async fn post(&self, text: &str) -> Answer {
        self.try_send("POST", "/timers", Some(text.to_owned())).await.expect("an answer to a create")
    }

    /// Creates a timer that must be accepted; its id.
    pub async fn create(&self, timer: &Value) -> String {
        let answer = self.post(&timer.to_string()).await;
        assert_eq!(answer.status, 201, "{timer}: {}", answer.text);
        answer.id()
    }

    /// `data` of `GET /timers/{id}`.
    pub async fn timer(&self, id: &str) -> Value {
        let answer = self.get(&format!("/timers/{id}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"].clone()
    }

    /// What `/metrics` says of a metric without labels, if it says anything.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.get("/metrics").await.text;
        metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until `/healthz`, which must be well, says this of one of its items.
    pub async fn wait_for_health(&self, item: &str, value: &str) {
        super::eventually(&format!("/healthz says that {item} is {value}"), TIMEOUT, async || {
            let health = self.get("/healthz").await;
            assert_eq!(health.status, 200, "{}", health.text);
            (health.json()["data"][item] == value).then_some(())
        })
        .await;
    }

    /// How many timers there are in this status.
    pub async fn count(&self, status: &str) -> u64 {
        self.total(&format!("status={status}")).await.expect("the store is available")
    }

    /// `None` while the store is not available.
    async fn total(&self, filter: &str) -> Option<u64> {
        let answer = self.get(&format!("/timers/count?{filter}")).await;
        if answer.status == 503 {
            return None;
        }
        assert_eq!(answer.status, 200, "{}", answer.text);
        Some(answer.json()["data"]["total"].as_u64().expect("a total"))
    }

    /// Returns once no timer is pending or executing any more, so that no further call can come.
    pub async fn wait_until_finished(&self, limit: Duration) {
        super::eventually("no timer is pending or executing any more", limit, async || {
            if self.total("status=pending").await? > 0 || self.total("status=executing").await? > 0 {
                return None;
            }
            // One that is retried may have been each of the two while the other was counted. Larger totals may be estimates.
            let all = self.total("").await?;
            let mut finished = 0;
            for status in ["completed", "failed", "canceled", "expired"] {
                finished += self.total(&format!("status={status}")).await?;
            }
            (finished >= all || all > 50_000).then_some(())
        })
        .await;
    }

    pub async fn wait_for_status(&self, id: &str, status: &str) -> Value {
        super::eventually(&format!("timer {id} is {status}"), Duration::from_secs(10), async || {
            Some(self.timer(id).await).filter(|timer| timer["status"] == status)
        })
        .await
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn id(&self) -> String {
        self.json()["data"]["id"].as_str().unwrap_or_else(|| panic!("an id in {}", self.text)).to_owned()
    }

    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_else(|| panic!("a message in {}", self.text)).to_owned()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A callback of type `nats` that a stream has to store.
pub fn stored_at(topic: &str, payload: &Value) -> Value {
    json!({"type": "nats", "topic": topic, "jetstream": true, "payload": payload})
}

/// A callback of type `nats` for any subscriber.
pub fn told_to(topic: &str, payload: &Value) -> Value {
    json!({"type": "nats", "topic": topic, "payload": payload})
}

/// A callback of type `http`.
pub fn callback_to(url: &str, payload: &Value) -> Value {
    json!({"type": "http", "url": url, "payload": payload})
}
