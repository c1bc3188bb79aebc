//! The API over the in-memory store, for tests.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, extract::Request};
use commands::{Commands, Filter, KeyRing, Rules, Searches, Stats, Stores};
use domain::{CallbackKind, Caller, Clock, Endpoint, Horizon, Invalid, KindSet, ManualClock, Next, Shard, Span, Timestamp};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use store::{Claim, ClaimToken, DueEntry, Member, NodeId, OnLocked, ShardCursor, Store};
use store_testing::Model;
use tower::ServiceExt;

use crate::{ApiConfig, ApiKey, BasePath, HealthItem, Limits, RateLimit, Rates};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
/// 2030-01-01T00:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

pub(crate) struct Rig {
    pub router: Router,
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    pub nudged: Arc<Mutex<Vec<DueEntry>>>,
}

pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().expect("a message").to_owned()
    }

    pub(crate) fn data(&self, field: &str) -> Value {
        self.json()["data"][field].clone()
    }

    /// Asserts the envelope with this status and code, and gives its message.
    pub(crate) fn refused(&self, status: u16, code: u8) -> String {
        let json = self.json();
        assert_eq!((self.status.as_u16(), json["code"].as_u64()), (status, Some(code.into())), "{}", self.text);
        assert_eq!(json["data"], Value::Null);
        assert_eq!(json.as_object().map(|members| members.len()), Some(3));
        assert_eq!(self.headers["content-type"], "application/json");
        self.message()
    }

    /// Asserts an error of the v1 dialect with this status and code, and gives it.
    pub(crate) fn refused_v1(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!((self.status.as_u16(), json["error"].as_str()), (status, Some(code)), "{}", self.text);
        let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["error", "message", "details", "timestamp"]);
        assert!(json["message"].is_string() && json["details"].is_object(), "{}", self.text);
        Timestamp::parse("timestamp", json["timestamp"].as_str().unwrap()).unwrap();
        assert_eq!(self.headers["content-type"], "application/json");
        assert!(self.headers.contains_key("x-request-id"));
        json
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        Self::over(Arc::new(Model::new(clock.clone(), 1)), clock, Vec::new())
    }

    pub(crate) fn limited(limits: Limits) -> Self {
        Self::configured(ApiConfig { limits, ..config() })
    }

    pub(crate) fn rated(rate_limit: RateLimit) -> Self {
        Self::configured(ApiConfig { rates: Rates::new(Some(rate_limit)), ..config() })
    }

    pub(crate) fn under(base_path: BasePath) -> Self {
        Self::configured(ApiConfig { base_path, ..config() })
    }

    pub(crate) fn with_dev_tools(tools: dev::DevTools) -> Self {
        Self::configured(ApiConfig { dev: Some(tools), ..config() })
    }

    pub(crate) fn with_console(console: Router, base_path: BasePath) -> Self {
        Self::configured(ApiConfig { console: Some(console), base_path, ..config() })
    }

    fn configured(config: ApiConfig) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        Self::build(Arc::new(Model::new(clock.clone(), 1)), clock, config)
    }

    pub(crate) fn over(store: Arc<dyn Store>, clock: Arc<ManualClock>, health: Vec<HealthItem>) -> Self {
        Self::build(store, clock, ApiConfig { health, ..config() })
    }

    fn build(store: Arc<dyn Store>, clock: Arc<ManualClock>, config: ApiConfig) -> Self {
        let nudged = Arc::new(Mutex::new(Vec::new()));
        let to = nudged.clone();
        let commands = Commands {
            stores: Stores::of(store.clone()),
            clock: clock.clone(),
            rules: Rules {
                horizon: Horizon { min_delay: Span::from_secs(5), max_horizon: Span::parse("horizon", "365d").ok() },
                callbacks: KindSet::EMPTY.with(CallbackKind::Http),
                callback_check: Arc::new(|_, callback| match &callback.endpoint {
                    Endpoint::Http(http) if http.url.host() == "169.254.169.254" => {
                        Err(Invalid::new("callback.url", "must not reach a denied address"))
                    }
                    _ => Ok(()),
                }),
            },
            nudge: Arc::new(move |entries| to.lock().unwrap().extend_from_slice(entries)),
            caller: Caller::Administrator,
            searches: Searches::default(),
            stats: Stats::default(),
        };
        let keyring = Arc::new(KeyRing::new(store.clone(), clock.clone()));
        Self { router: crate::router(config, commands, keyring), store, clock, nudged }
    }

    pub(crate) async fn send(&self, request: Request) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        Reply { status: parts.status, headers: parts.headers, text }
    }

    /// The answer with its body as it is sent.
    pub(crate) async fn send_for_bytes(&self, request: Request) -> (HeaderMap, bytes::Bytes) {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        (parts.headers, body.collect().await.unwrap().to_bytes())
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> Reply {
        self.send(request(method, path, body)).await
    }

    /// The same with another key than the administrator's.
    pub(crate) async fn call_with(&self, key: &str, method: &str, path: &str, body: &str) -> Reply {
        let mut request = request(method, path, body);
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        self.send(request).await
    }

    /// A new key for these namespaces (a JSON array, or `null`), as its holder shows it.
    pub(crate) async fn issued(&self, namespaces: &str, rights: &str) -> String {
        let body = format!(r#"{{"name":"k","namespaces":{namespaces},"rights":"{rights}"}}"#);
        let reply = self.call("POST", "/keys", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.data("key").as_str().unwrap().to_owned()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, "").await
    }

    /// Creates a timer and gives its id.
    pub(crate) async fn created(&self, body: &str) -> String {
        let reply = self.call("POST", "/timers", body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.data("id").as_str().unwrap().to_owned()
    }

    /// How many timers there are.
    pub(crate) async fn count(&self) -> u64 {
        self.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap().timers
    }

    /// Takes everything that is pending, as a scheduler would; then it is executing.
    pub(crate) async fn claim_all(&self) -> Vec<store::Claimed> {
        self.store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(60)).await.unwrap();
        let shard_leases = self.store.acquire(NodeId(1), &[Shard(0)]).await.unwrap();
        let from = [ShardCursor { shard: Shard(0), after: None }];
        let entries = self.store.due(&from, Timestamp::MAX, 1000).await.unwrap();
        let claim = Claim { token: ClaimToken(7), shard_leases, lease: Span::from_secs(60), on_locked: OnLocked::Skip };
        self.store.claim(&claim, &entries).await.unwrap()
    }

    pub(crate) async fn complete_all(&self) {
        self.settle_all(&Next::Completed { at: self.clock.now() }).await;
    }

    /// Tries everything that is pending, with this result.
    pub(crate) async fn settle_all(&self, next: &Next) {
        let done: Vec<_> = self.claim_all().await.iter().map(|claimed| claimed.settle(next.clone())).collect();
        assert!(self.store.settle(&done).await.unwrap().iter().all(|counted| *counted));
    }
}

fn config() -> ApiConfig {
    let metrics = Arc::new(|| "timer_up 1\n".to_owned());
    let base_path = BasePath::default();
    ApiConfig {
        api_key: ApiKey::new(KEY),
        base_path,
        book_url: None,
        rates: Rates::new(None),
        limits: Limits::default(),
        health: Vec::new(),
        metrics,
        tracer: None,
        dev: None,
        console: None,
    }
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> Request {
    let mut request = Request::builder().method(method).uri(path).header("x-api-key", KEY);
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Body::from(body.to_owned())).unwrap()
}
