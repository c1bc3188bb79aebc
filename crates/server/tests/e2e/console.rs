//! The web console of the real binary, as a browser without script uses it.

use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rig::{API_KEY, Answer, Backend, Client, Receiver, Service, beside_others, callback_to, eventually, heavy};

const WITHIN: Duration = Duration::from_secs(10);
/// How long a node believes what it has read of the keys.
const KEYS_BELIEVED: Duration = Duration::from_secs(1);
/// A second is promised. The rest is for a request on the way.
const NOTICED_WITHIN: Duration = Duration::from_millis(1_500);

/// A browser that has logged in, or has not yet.
#[derive(Clone)]
struct Browser {
    client: Client,
    port: u16,
    cookie: String,
}

impl Browser {
    fn of(service: &Service, client: Client) -> Self {
        Self { client, port: service.port(), cookie: String::new() }
    }

    async fn log_in(&self, key: &str) -> Self {
        let answer = self.post("/console/login", &format!("key={key}")).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        let set = answer.headers["set-cookie"].to_str().expect("a cookie");
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && !set.contains(key), "{set}");
        Self { cookie: set.split(';').next().unwrap_or_default().to_owned(), ..self.clone() }
    }

    async fn get(&self, path: &str) -> Answer {
        let request = self.client.request("GET", path).header("cookie", &self.cookie).header("accept", "text/html");
        self.client.send_raw(request, "").await.expect("an answer")
    }

    async fn post(&self, path: &str, form: &str) -> Answer {
        self.post_from(&format!("http://127.0.0.1:{}", self.port), path, form).await
    }

    async fn post_from(&self, origin: &str, path: &str, form: &str) -> Answer {
        let request = self.client.request("POST", path).header("cookie", &self.cookie).header("origin", origin);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.client.send_raw(request, form.to_owned()).await.expect("an answer")
    }
}

async fn issue(client: &Client, namespaces: &Value, rights: &str) -> (String, String) {
    let issued = client.send("POST", "/keys", Some(&json!({"name": "k", "namespaces": namespaces, "rights": rights}))).await;
    let data = issued.json()["data"].clone();
    (data["id"].as_str().expect("an id").to_owned(), data["key"].as_str().expect("a key").to_owned())
}

fn timer(namespace: &str, key: &str) -> Value {
    json!({"delay": "1h", "namespace": namespace, "key": key, "callback": callback_to("http://127.0.0.1:9/", &json!("</script>"))})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_is_led_to_the_console_logs_in_and_steers_timers() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let id = client.create(&timer("shop", "tulip")).await;
    let stranger = Browser::of(&service, client.clone());
    let led = stranger.get("/").await;
    assert_eq!((led.status, led.headers["location"].to_str().expect("a path")), (303, "/console"));
    let led = stranger.get("/console").await;
    assert_eq!((led.status, led.headers["location"].to_str().expect("a path")), (303, "/console/login"));
    assert_eq!(client.get("/").await.status, 404, "other clients are told that there is no such route");

    let browser = stranger.log_in(API_KEY).await;
    for path in
        ["", "/timers", "/failed", "/operations", "/destinations", "/namespaces", "/keys", "/cluster", "/about", "/timers/new"]
    {
        let page = browser.get(&format!("/console{path}")).await;
        assert!(page.status == 200 && page.headers["content-security-policy"].to_str().is_ok(), "{path} {}", page.text);
    }
    assert!(browser.get("/console/timers?q=ns:shop").await.text.contains("tulip"));
    let page = format!("/console/timers/{id}");
    assert_eq!(browser.post_from("https://evil.example", &format!("{page}/cancel"), "").await.status, 403);
    assert_eq!(browser.post(&format!("{page}/pause"), "revision=1").await.status, 303);
    assert_eq!(browser.post(&format!("{page}/cancel"), "revision=1").await.status, 412, "it was paused meanwhile");
    assert_eq!(browser.post(&format!("{page}/cancel"), "revision=2").await.status, 303);
    assert_eq!(client.get(&format!("/timers/{id}")).await.json()["data"]["status"], "canceled");

    for _ in 0..5 {
        assert_eq!(stranger.post("/console/login", "key=wrong").await.status, 403);
    }
    assert_eq!(stranger.post("/console/login", &format!("key={API_KEY}")).await.status, 429);
    assert_eq!(browser.get("/console").await.status, 200, "who has logged in stays");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_the_rights_of_its_key_and_ends_with_it() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (own, other) = (client.create(&timer("a", "own")).await, client.create(&timer("b", "tulip")).await);
    let (id, key) = issue(&client, &json!(["a"]), "read").await;
    let browser = Browser::of(&service, client.clone()).log_in(&key).await;
    for path in ["", "/timers", "/failed", "/operations", "/destinations", "/namespaces"] {
        let page = browser.get(&format!("/console{path}")).await;
        assert!(page.status == 200 && !page.text.contains("tulip"), "{path}");
    }
    for path in ["/keys", "/cluster", "/timers?q=ns:b", "/timers/new"] {
        assert_eq!(browser.get(&format!("/console{path}")).await.status, 403, "{path}");
    }
    assert_eq!(browser.get(&format!("/console/timers/{other}")).await.status, 404);
    for (path, form) in [
        (format!("/console/timers/{own}/cancel"), ""),
        (format!("/console/timers/{own}/fire"), ""),
        ("/console/timers/new".to_owned(), "delay=1h&url=http%3A%2F%2Fa&namespace=a"),
        (format!("/console/timers/{own}/edit"), "delay=2h&url=http%3A%2F%2Fa"),
        ("/console/operations/new".to_owned(), "do=cancel&filter=%7B%7D&expected_max=9"),
        ("/console/keys".to_owned(), "name=x&rights=write"),
    ] {
        assert_eq!(browser.post(&path, form).await.status, 403, "{path}");
    }
    assert_eq!(client.get(&format!("/timers/{own}")).await.json()["data"]["revision"], 1);
    let administrator = Browser::of(&service, client.clone()).log_in(API_KEY).await;
    assert_eq!(administrator.post(&format!("/console/keys/{id}/revoke"), "").await.status, 303);
    assert_eq!(client.with_key(&key).get("/whoami").await.status, 401, "the API knows it at once");
    eventually("the session ends", WITHIN, async || (browser.get("/console").await.status == 303).then_some(())).await;
    service.stop().await;
}

/// No node keeps sessions: each reads the keys from the database that they share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_within_a_second_when_another_node_revokes_its_key() {
    const PAGE: &str = "/console/timers";
    let _machine = heavy().await;
    let backend = Backend::postgres();
    let (mut first, mut second) = (Service::start(&backend).await, Service::start(&backend).await);
    let (id, key) = issue(&first.client(), &json!(["a"]), "read").await;
    let administrator = Browser::of(&second, second.client()).log_in(API_KEY).await;
    let here = Browser::of(&first, first.client()).log_in(&key).await;
    let there = Browser { cookie: here.cookie.clone(), ..Browser::of(&second, second.client()) };
    // What both know of the key is as fresh as can be when it is revoked.
    assert_eq!((there.get(PAGE).await.status, here.get(PAGE).await.status), (200, 200), "one login opens every node");

    assert_eq!(administrator.post(&format!("/console/keys/{id}/revoke"), "").await.status, 303);
    let revoked_at = Instant::now();
    let led = eventually("the session ends at the other node", NOTICED_WITHIN, async || {
        let asked_after = revoked_at.elapsed();
        let page = here.get(PAGE).await;
        // However long an answer takes on a busy machine, none that is asked for after the second is a page.
        assert!(page.status != 200 || asked_after < KEYS_BELIEVED, "a page that was asked for {asked_after:?} after the end");
        (page.status == 303).then_some(page)
    })
    .await;
    println!("a session of a key that another node revoked ended after {:?}", revoked_at.elapsed());
    assert_eq!(led.headers["location"].to_str().expect("a path"), "/console/login?next=%2Fconsole%2Ftimers");
    assert_eq!(here.post("/console/timers/new", "delay=1h").await.status, 401, "no form of it is taken any more");
    assert_eq!((there.get(PAGE).await.status, administrator.get(PAGE).await.status), (303, 200), "only that of the key ends");
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_page_shows_a_timer_fire_and_an_export_is_that_of_the_api() {
    let _machine = beside_others().await;
    let (backend, receiver) = (Backend::sqlite(), Receiver::start());
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let browser = Browser::of(&service, client.clone()).log_in(API_KEY).await;
    let soon = json!({"delay": "2s", "callback": callback_to(&receiver.url("/"), &json!(1))});
    let id = client.create(&soon).await;
    let request = client.request("GET", &format!("/console/live?view=/timers/{id}")).header("cookie", &browser.cookie);
    let seen = tokio::time::timeout(Duration::from_secs(20), seen_in_stream(request, "status completed")).await;
    assert!(seen.is_ok_and(|seen| seen), "the page showed the end of the timer");
    client.create(&timer("shop", "=1+1")).await;
    for format in ["csv", "json", "ndjson"] {
        let of_api = client.get(&format!("/timers.{format}?namespace=shop")).await.text;
        assert_eq!(browser.get(&format!("/console/timers.{format}?q=ns:shop")).await.text, of_api, "{format}");
    }
    service.stop().await;
}

/// Whether a stream shows this before it ends.
async fn seen_in_stream(request: http::request::Builder, text: &str) -> bool {
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build(hyper_util::client::legacy::connect::HttpConnector::new());
    let request = request.body(http_body_util::Full::<bytes::Bytes>::default()).expect("a valid request");
    let answer = http.request(request).await.expect("an answer");
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut frames = answer.into_body().into_data_stream();
    let mut read = String::new();
    while let Some(Ok(frame)) = frames.next().await {
        read.push_str(&String::from_utf8_lossy(&frame));
        if read.contains(text) {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_is_under_the_base_path_read_only_or_off() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let settings = [("MIN_DELAY", "0s"), ("BASE_PATH", "/x/y"), ("CONSOLE", "read-only")];
    let mut service = Service::begin(&backend, &settings);
    let client = Client::under(service.port(), "/x/y");
    eventually("the service is healthy", Duration::from_secs(30), async || {
        client.try_send("GET", "/healthz", None).await.is_ok_and(|answer| answer.status == 200).then_some(())
    })
    .await;
    let id = client.create(&timer("a", "k")).await;
    let stranger = Browser::of(&service, client.clone());
    assert_eq!(stranger.get("/").await.headers["location"], "/x/y/console");
    let browser = stranger.log_in(API_KEY).await;
    let page = browser.get("/console").await;
    assert!(page.text.contains("href=\"/x/y/console/timers\"") && !page.text.contains("\"/console/"), "{}", page.text);
    assert_eq!(browser.post(&format!("/console/timers/{id}/cancel"), "").await.status, 403);
    service.stop().await;

    let mut service = Service::start_with(&backend, &[("CONSOLE", "off")]).await;
    let stranger = Browser::of(&service, service.client());
    for path in ["/", "/console", "/console/login"] {
        assert_eq!(stranger.get(path).await.status, 401, "{path}");
    }
    service.stop().await;
}
