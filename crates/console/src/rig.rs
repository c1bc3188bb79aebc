//! The console over the in-memory store, for tests.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
};
use commands::{Commands, KeyRing, Rules, Searches, Stats, Stores};
use domain::{
    Access, AccessKeyId, Callback, CallbackKind, Caller, Clock, Horizon, Invalid, Key, KindSet, ManualClock, Namespace,
    Namespaces, Next, RequestedTime, Rights, Shard, Span, TimerId, Timestamp,
};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use store::{Claim, ClaimToken, Member, NodeId, OnLocked, ShardCursor, Store};
use store_testing::{Faulty, Model};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{ConsoleConfig, ConsoleMode, Payloads, TimerReader};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
/// 2030-01-01T00:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);
const HOST: &str = "127.0.0.1:8080";

pub(crate) struct Rig {
    pub(crate) router: Router,
    pub(crate) commands: Commands,
    pub(crate) store: Arc<dyn Store>,
    /// The same, to make it fail.
    pub(crate) faulty: Arc<Faulty<Model>>,
    /// The clock of the timers.
    pub(crate) clock: Arc<ManualClock>,
    /// The clock of the machine.
    pub(crate) machine: Arc<ManualClock>,
    /// The administrator's cookie.
    pub(crate) cookie: String,
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    /// Where the link with this text leads to.
    pub(crate) fn link(&self, text: &str) -> String {
        let before = self.text.split(&format!(">{text}</a>")).next().unwrap_or_default();
        let link = before.rsplit("href=\"").next().and_then(|rest| rest.split('"').next()).unwrap_or_default();
        link.replace("&amp;", "&")
    }

    /// The cookie that is set, as a browser sends it back.
    pub(crate) fn cookie(&self) -> String {
        let set = self.headers.get("set-cookie").map(|value| value.to_str().unwrap()).unwrap_or_default();
        set.split(';').next().unwrap_or_default().to_owned()
    }
}

pub(crate) fn config() -> ConsoleConfig {
    ConsoleConfig {
        api_key: KEY.to_owned(),
        base_path: String::new(),
        mode: ConsoleMode::On,
        url: None,
        insecure_cookie: false,
        payloads: Payloads::Hidden,
        version: "0.0.0".to_owned(),
        store: "SQLite file /var/lib/timer.db".to_owned(),
        settings: vec![("PORT".to_owned(), "8080".to_owned())],
        health: Vec::new(),
        export: None,
        clock: Arc::new(ManualClock::at(NOW)),
        rate: Arc::new(|_| Ok(())),
        reader: TimerReader {
            new_timer: |_| Err(Invalid::new("the body", "is not read here")),
            patch: |_| Err(Invalid::new("the body", "is not read here")),
        },
        verify: |call| Ok(call.secret == "whsec_right"),
        development: None,
        dev: None,
        stop: CancellationToken::new(),
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::configured(config())
    }

    pub(crate) fn with_payloads(payloads: Payloads) -> Self {
        Self::configured(ConsoleConfig { payloads, ..config() })
    }

    pub(crate) fn configured(config: ConsoleConfig) -> Self {
        Self::sharded(config, 1)
    }

    pub(crate) fn sharded(config: ConsoleConfig, shards: u16) -> Self {
        let [clock, machine] = [NOW; 2].map(|now| Arc::new(ManualClock::at(now)));
        let config = ConsoleConfig { clock: machine.clone(), ..config };
        let faulty = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), shards))));
        let store: Arc<dyn Store> = faulty.clone();
        let commands = Commands {
            stores: Stores::of(Arc::clone(&store)),
            clock: clock.clone(),
            rules: Rules {
                horizon: Horizon { min_delay: Span::ZERO, max_horizon: None },
                callbacks: KindSet::EMPTY.with(CallbackKind::Http),
                callback_check: Arc::new(|_, _| Ok(())),
            },
            nudge: Arc::new(|_| {}),
            caller: Caller::Administrator,
            searches: Searches::default(),
            stats: Stats::default(),
        };
        let sessions = crate::session::Sessions::new(&config.api_key);
        let cookie = format!("timer={}", sessions.issue(crate::session::Holder::Administrator, NOW));
        let keyring = Arc::new(KeyRing::new(store.clone(), clock.clone()));
        Self { router: crate::router(config, &commands, keyring), commands, store, faulty, clock, machine, cookie }
    }

    pub(crate) async fn send(&self, mut request: Request) -> Reply {
        request.extensions_mut().insert(ConnectInfo(IpAddr::from([127, 0, 0, 1])));
        let (head, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        Reply { status: head.status, headers: head.headers, text }
    }

    /// A page, as the administrator sees it.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_as(&self.cookie, path).await
    }

    pub(crate) async fn get_as(&self, cookie: &str, path: &str) -> Reply {
        self.send(request("GET", path).header("cookie", cookie).body(Body::empty()).unwrap()).await
    }

    /// A form that a page of the console has sent.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Reply {
        self.post_as(&self.cookie, path, form).await
    }

    pub(crate) async fn post_as(&self, cookie: &str, path: &str, form: &str) -> Reply {
        let request = request("POST", path).header("cookie", cookie).header("sec-fetch-site", "same-origin");
        let request =
            request.header("origin", format!("http://{HOST}")).header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(form.to_owned())).unwrap()).await
    }

    pub(crate) async fn log_in(&self, key: &str) -> Reply {
        self.post_as("", "/console/login", &format!("key={key}")).await
    }

    /// A new key, and the cookie of its holder.
    pub(crate) async fn holder(&self, namespaces: &[&str], rights: Rights) -> (AccessKeyId, String) {
        let names = namespaces.iter().map(|name| Namespace::parse(name).unwrap()).collect();
        let access = Access { namespaces: Namespaces::Only(names), rights };
        let (key, text) = self.commands.create_key("holder", access, [namespaces.len() as u8; 32]).await.unwrap();
        // A key that was just issued is known within this time.
        self.clock.advance(Span::from_millis(100));
        let reply = self.log_in(&text).await;
        assert_eq!(reply.status, 303, "{}", reply.text);
        (key.id, reply.cookie())
    }

    /// A timer in an hour; its id.
    pub(crate) async fn timer(&self, key: &str, namespace: &str) -> TimerId {
        self.created(key, namespace, r#"{"type":"http","url":"https://api.shop.example/hook"}"#).await
    }

    /// The same at another receiver.
    pub(crate) async fn timer_at(&self, key: &str, namespace: &str, url: &str) -> TimerId {
        self.created(key, namespace, &format!(r#"{{"type":"http","url":"{url}"}}"#)).await
    }

    /// Attempts everything that is pending, and lets it fail with this error.
    pub(crate) async fn fail_all(&self, error: &str) {
        self.store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(60)).await.unwrap();
        let shard_leases = self.store.acquire(NodeId(1), &[Shard(0)]).await.unwrap();
        let from = [ShardCursor { shard: Shard(0), after: None }];
        let entries = self.store.due(&from, Timestamp::MAX, 1000).await.unwrap();
        let claim = Claim { token: ClaimToken(7), shard_leases, lease: Span::from_secs(60), on_locked: OnLocked::Skip };
        let claimed = self.store.claim(&claim, &entries).await.unwrap();
        let next = Next::Failed { at: self.clock.now(), error: error.to_owned() };
        let done: Vec<_> = claimed.iter().map(|claimed| claimed.settle(next.clone())).collect();
        assert!(self.store.settle(&done).await.unwrap().iter().all(|counted| *counted));
    }

    pub(crate) async fn timer_with_payload(&self, key: &str, payload: &str) -> TimerId {
        let callback = format!(r#"{{"type":"http","url":"https://api.shop.example/hook","payload":{payload}}}"#);
        self.created(key, "a", &callback).await
    }

    async fn created(&self, key: &str, namespace: &str, callback: &str) -> TimerId {
        let target = commands::Target::Callback(Callback::from_json(callback).unwrap());
        let mut request = commands::NewTimerRequest::new(RequestedTime::After(Span::from_secs(3600)), target);
        request.key = Some(Key::parse(key).unwrap());
        request.namespace = Namespace::parse(namespace).unwrap();
        // So that no two are created at the same moment.
        self.clock.advance(Span::from_millis(1));
        self.commands.create(request).await.unwrap().timer().id()
    }
}

pub(crate) fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header("host", HOST)
}
