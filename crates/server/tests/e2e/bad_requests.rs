//! Requests that break a rule: refused in the envelope with a message that names the field, and nothing is stored.

use serde_json::{Value, json};

use crate::rig::{API_KEY, Answer, Backend, Service, beside_others, for_each_store, now};

for_each_store!(
    a_bad_create_is_refused_by_name_and_nothing_is_stored,
    a_bad_update_is_refused_by_name_and_nothing_is_changed,
    requests_that_fit_no_route_or_rule_get_the_envelope_too,
    without_the_key_nothing_is_answered,
    a_body_of_the_wrong_kind_or_size_is_refused,
    a_head_that_is_too_large_is_refused,
    what_lies_beyond_the_horizon_is_refused_by_name,
);

const AT: &str = r#""execute_at":"2100-01-01T00:00:00Z""#;
const CALLBACK: &str = r#""callback":{"type":"http","url":"http://127.0.0.1:9/"}"#;

/// The body, and what the message must begin with.
type Refused = (String, &'static str);

/// Not JSON, or not an object.
fn malformed() -> Vec<Refused> {
    [
        ("", "the body is missing"),
        ("{", "the body is not valid JSON"),
        ("nonsense", "the body is not valid JSON"),
        (r#"{"delay":"10s",}"#, "the body is not valid JSON"),
        ("{} {}", "the body is not valid JSON"),
        ("[]", "the body must be a JSON object"),
        ("null", "the body must be a JSON object"),
        ("3", "the body must be a JSON object"),
        (r#""text""#, "the body must be a JSON object"),
        ("{}", "execute_at or delay is required"),
    ]
    .map(|(body, start)| (body.to_owned(), start))
    .into()
}

fn bad_times() -> Vec<Refused> {
    let at = |text: &str| format!(r#"{{"execute_at":{text},{CALLBACK}}}"#);
    let delay = |text: &str| format!(r#"{{"delay":{text},{CALLBACK}}}"#);
    let nearly_now = crate::rig::instant(now() + 2_000_000);
    vec![
        (at(r#""tomorrow""#), "execute_at must be an RFC 3339"),
        (at(r#""2100-01-01""#), "execute_at must be an RFC 3339"),
        (at(r#""2100-01-01T00:00:00""#), "execute_at must be an RFC 3339"),
        (at(r#""2100-02-30T00:00:00Z""#), "execute_at must be an RFC 3339"),
        (at(r#""""#), "execute_at must be an RFC 3339"),
        (at(r#""2001-01-01T00:00:00Z""#), "execute_at must be in the future"),
        (at(&format!("{nearly_now:?}")), "execute_at must be in the future"),
        (at("1700000000"), "execute_at must be a string"),
        (at("null"), "execute_at must be a string"),
        (delay(r#""soon""#), "delay must be a duration"),
        (delay(r#""90""#), "delay must be a duration"),
        (delay(r#""-90s""#), "delay must be a duration"),
        (delay(r#""P1M""#), "delay must be a duration"),
        (delay("90"), "delay must be a string"),
        (delay(r#""1s""#), "delay must be at least 5s"),
        (delay(r#""4000000d""#), "delay must not lead beyond the year 9999"),
        (format!(r#"{{{AT},"delay":"10s",{CALLBACK}}}"#), "delay must not be given together with execute_at"),
    ]
}

fn bad_callbacks() -> Vec<Refused> {
    let callback = |text: &str| format!(r#"{{{AT},"callback":{text}}}"#);
    let http = |rest: &str| callback(&format!(r#"{{"type":"http","url":"http://127.0.0.1:9/",{rest}}}"#));
    let url = |url: &str| callback(&format!(r#"{{"type":"http","url":"{url}"}}"#));
    vec![
        (format!("{{{AT}}}"), "callback is required"),
        (callback("null"), "callback must be an object"),
        (callback(r#""http://127.0.0.1:9/""#), "callback must be an object"),
        (callback(r#"["http","http://127.0.0.1:9/"]"#), "callback must be an object"),
        (callback("{}"), "callback.type is required"),
        (callback(r#"{"type":"smtp","url":"http://a/"}"#), "callback.type must be http or nats"),
        (callback(r#"{"type":"http"}"#), "callback.url is required"),
        (callback(r#"{"type":"http","url":"http:///127.0.0.1/x"}"#), "callback.url must be a valid http or https URL"),
        (callback(r#"{"type":"http","url":"http:127.0.0.1/x"}"#), "callback.url must be a valid http or https URL"),
        (callback(r#"{"type":"http","url":"http:/127.0.0.1/x"}"#), "callback.url must be a valid http or https URL"),
        (callback(r#"{"type":"http","url":"http://127.0.0.1:0/x"}"#), "callback.url must have a port from 1 to 65535, or none"),
        (callback(r#"{"type":"http","url":"http://a/","verb":"PUT"}"#), "callback.'verb' is not a known field"),
        (callback(r#"{"type":"http","url":"http://a/","topic":"t"}"#), "callback.topic does not belong"),
        (callback(r#"{"type":"nats","topic":"a.b"}"#), "callback.type must be http: no NATS server is configured"),
        (callback(r#"{"type":"nats","topic":"a.*"}"#), "callback.topic must be a NATS subject"),
        (url("ftp://a/"), "callback.url must be a valid http or https URL"),
        (url("not a url"), "callback.url must be a valid http or https URL"),
        (url("http://user:secret@a/"), "callback.url must not contain credentials"),
        (url(&format!("http://a/{}", "x".repeat(2048))), "callback.url must not be longer than 2048 characters"),
        (url("http://169.254.169.254/latest"), "callback.url must not be called"),
        (http(r#""headers":["a"]"#), "callback.headers must be an object of strings"),
        (http(r#""headers":{"a":1}"#), "callback.headers.a must be a string"),
        (http(r#""headers":{"Host":"x"}"#), "callback.headers.Host is set by the service"),
        (http(r#""headers":{"Content-Length":"1"}"#), "callback.headers.Content-Length is set by the service"),
        (http(r#""headers":{"Transfer-Encoding":"chunked"}"#), "callback.headers.Transfer-Encoding is set by the service"),
        (http(r#""headers":{"connection":"close"}"#), "callback.headers.connection is set by the service"),
        (http(r#""headers":{"webhook-id":"x"}"#), "callback.headers.webhook-id is set by the service"),
        (http(r#""headers":{"a b":"x"}"#), "callback.headers must have valid HTTP header names"),
        (http(r#""headers":{"a":"x\r\ny: z"}"#), "callback.headers.a must be printable ASCII"),
        (http(r#""timeout":"99ms""#), "callback.timeout must lie between 100ms and 5m"),
        (http(r#""timeout":"6m""#), "callback.timeout must lie between 100ms and 5m"),
        (http(r#""timeout":30"#), "callback.timeout must be a string"),
        (http(r#""protocol":"grpc""#), "callback.protocol must be webhook or timer"),
        (http(&format!(r#""payload":"{}""#, "x".repeat(256 * 1024))), "callback.payload must not be longer than 262144 bytes"),
        (
            http(&format!(r#""payload":{}{}"#, "[".repeat(65), "]".repeat(65))),
            "callback.payload must not be nested deeper than 64",
        ),
    ]
}

fn bad_fields() -> Vec<Refused> {
    let with = |rest: &str| format!("{{{AT},{CALLBACK},{rest}}}");
    vec![
        (with(r#""exectue_at":"x""#), "'exectue_at' is not a known field"),
        (with(r#""status":"completed""#), "'status' is not a known field"),
        (with(r#""delivery":"exactly_once""#), "delivery must be at_least_once or at_most_once"),
        (with(r#""namespace":"""#), "namespace must have 1 to 255 characters"),
        (with(&format!(r#""namespace":"{}""#, "n".repeat(256))), "namespace must have 1 to 255 characters"),
        (with(r#""namespace":7"#), "namespace must be a string"),
        (with(r#""key":"""#), "key must have 1 to 255 characters"),
        (with(&format!(r#""key":"{}""#, "k".repeat(256))), "key must have 1 to 255 characters"),
        (with(r#""key":"a\u0000b""#), "key must not contain control characters"),
        (with(r#""correlation_id":"a\nb""#), "correlation_id must not contain control characters"),
        (with(r#""on_conflict":"replace""#), "on_conflict must not be given without key"),
        (with(r#""key":"k","on_conflict":"merge""#), "on_conflict must be reject, replace, keep, postpone, earliest or latest"),
        (with(&format!(r#""metadata":"{}""#, "x".repeat(64 * 1024))), "metadata must not be longer than 65536 bytes"),
        (with(r#""delivery":"at_most_once","delivery":"at_least_once""#), "delivery must not be given twice"),
        (with(r#""retry_policy":3"#), "retry_policy must be an object"),
        (with(r#""retry_policy":{"max_retry":3}"#), "retry_policy.'max_retry' is not a known field"),
        (with(r#""retry_policy":{"max_retries":1001}"#), "retry_policy.max_retries must be a whole number from 0 to 1000"),
        (with(r#""retry_policy":{"backoff_multiplier":0.5}"#), "retry_policy.backoff_multiplier must be a number from 1 to 100"),
        (with(r#""retry_policy":{"initial_interval":"0s"}"#), "retry_policy.initial_interval must be at least 1ms"),
        (with(r#""retry_policy":{"max_duration":"x"}"#), "retry_policy.max_duration must be a duration"),
        (with(r#""url":"http://a/""#), "url belongs to the short form"),
    ]
}

fn bad_short_forms() -> Vec<Refused> {
    [
        (r#"{"url":"http://a/"}"#, "hours, minutes and seconds must together be at least 1 second"),
        (r#"{"seconds":0,"url":"http://a/"}"#, "hours, minutes and seconds must together be at least 1 second"),
        (r#"{"seconds":1}"#, "url is required"),
        (r#"{"seconds":-1,"url":"http://a/"}"#, "seconds must be a whole number"),
        (r#"{"seconds":1.5,"url":"http://a/"}"#, "seconds must be a whole number"),
        (r#"{"minutes":"1","url":"http://a/"}"#, "minutes must be a whole number"),
        (r#"{"hours":99999999999,"url":"http://a/"}"#, "hours must be a whole number"),
        (r#"{"seconds":1,"url":"nowhere"}"#, "url must be a valid http or https URL"),
        (r#"{"seconds":1,"url":"http://a/","payload":1}"#, "'payload' is not a known field"),
    ]
    .map(|(body, start)| (body.to_owned(), start))
    .into()
}

async fn a_bad_create_is_refused_by_name_and_nothing_is_stored(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();

    let refused = [malformed(), bad_times(), bad_callbacks(), bad_fields(), bad_short_forms()].concat();
    for (body, start) in &refused {
        assert_refused(&client.post(body).await, 400, 2, start, body);
    }

    let list = client.get("/timers").await.json();
    assert_eq!(list["data"]["total"], 0, "{list}");
    println!("{}: {} bad creates refused", backend.name(), refused.len());
    service.stop().await;
}

async fn a_bad_update_is_refused_by_name_and_nothing_is_changed(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    let id =
        client.create(&json!({"delay": "1d", "metadata": {"kept": 1}, "callback": {"type": "http", "url": "http://a/"}})).await;
    let before = without_time_left(client.timer(&id).await);

    for (body, start) in [
        ("", "the body is missing"),
        ("[]", "the body must be a JSON object"),
        (r#"{"execute_at":"2001-01-01T00:00:00Z"}"#, "execute_at must be in the future"),
        (r#"{"execute_at":null}"#, "execute_at must be a string"),
        (r#"{"delay":"1s"}"#, "delay must be at least 5s"),
        (r#"{"callback":null}"#, "callback must be an object"),
        (r#"{"callback":{"type":"http"}}"#, "callback.url is required"),
        (r#"{"delivery":null}"#, "delivery must be a string"),
        (r#"{"namespace":"other"}"#, "namespace cannot be changed"),
        (r#"{"key":"other"}"#, "key cannot be changed"),
        (r#"{"on_conflict":"keep"}"#, "on_conflict cannot be changed"),
        (r#"{"retry_policy":{"max_retries":-1}}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
        (r#"{"metadata":{},"meta":{}}"#, "'meta' is not a known field"),
    ] {
        let answer = client.try_send("PUT", &format!("/timers/{id}"), Some(body.to_owned())).await.expect("an answer");
        assert_refused(&answer, 400, 2, start, body);
    }

    assert_eq!(without_time_left(client.timer(&id).await), before);
    service.stop().await;
}

async fn requests_that_fit_no_route_or_rule_get_the_envelope_too(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    let missing = "/timers/01890a5d-ac96-774b-bcce-b302099a8057";

    for (method, path, status, code, start) in [
        ("GET", missing, 404, 3, "timer not found"),
        ("DELETE", missing, 404, 3, "timer not found"),
        ("GET", "/timers/7", 400, 2, "id must be a UUID"),
        ("DELETE", "/timers/7", 400, 2, "id must be a UUID"),
        ("GET", "/nowhere", 404, 3, "no such route"),
        ("GET", "/", 404, 3, "no such route"),
        ("PATCH", "/timers", 405, 2, "method not allowed"),
        ("DELETE", "/timers", 405, 2, "method not allowed"),
        ("POST", "/healthz", 405, 2, "method not allowed"),
        ("GET", "/timers?limit=0", 400, 2, "limit must be a whole number from 1 to 200"),
        ("GET", "/timers?limit=201", 400, 2, "limit must be a whole number from 1 to 200"),
        ("GET", "/timers?limit=many", 400, 2, "limit must be a whole number from 1 to 200"),
        ("GET", "/timers?offset=-1", 400, 2, "offset must be a whole number"),
        ("GET", "/timers?status=done", 400, 2, "status must be pending"),
        ("GET", "/timers?sort=id", 400, 2, "sort must be created_at or execute_at"),
        ("GET", "/timers?order=up", 400, 2, "order must be asc or desc"),
        ("GET", "/timers?cursor=guess", 400, 2, "cursor must be a next_cursor"),
        ("GET", "/timers?page=2", 400, 2, "'page' is not a known parameter"),
    ] {
        let answer = client.try_send(method, path, None).await.expect("an answer");
        assert_refused(&answer, status, code, start, &format!("{method} {path}"));
    }

    service.stop().await;
}

async fn without_the_key_nothing_is_answered(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    for (method, path) in
        [("GET", "/timers"), ("POST", "/timers"), ("GET", "/timers/7"), ("GET", "/nowhere"), ("PATCH", "/timers")]
    {
        for key in [None, Some("x".repeat(API_KEY.len())), Some(API_KEY.to_lowercase() + "x"), Some(String::new())] {
            let mut request = client.request(method, path);
            if let Some(key) = &key {
                request = request.header("x-api-key", key);
            }
            let answer = client.send_raw(request, "").await.expect("an answer");
            assert_refused(&answer, 401, 4, "unauthorized", &format!("{method} {path} {key:?}"));
        }
    }
    service.stop().await;
}

async fn a_body_of_the_wrong_kind_or_size_is_refused(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    let good = format!("{{{AT},{CALLBACK}}}").into_bytes();
    let large = [b"{\"metadata\":\"".as_slice(), &b"x".repeat(1024 * 1024), b"\"}"].concat();
    let json_type = ("content-type", "application/json");
    for (what, headers, body, status, start) in [
        ("too large", vec![json_type], large, 413, "the body must not be larger than 1 MiB"),
        ("plain text", vec![("content-type", "text/plain")], good.clone(), 415, "content-type must be application/json"),
        ("no type", vec![], good.clone(), 415, "content-type must be application/json"),
        ("compressed", vec![json_type, ("content-encoding", "gzip")], good, 415, "the body must not be compressed"),
        ("not UTF-8", vec![json_type], vec![b'"', 0xff, b'"'], 400, "the body must be valid UTF-8"),
    ] {
        let request = client.request("POST", "/timers").header("x-api-key", API_KEY);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = client.send_raw(request, body).await.expect("an answer");
        assert_refused(&answer, status, 2, start, what);
    }
    assert_eq!(client.get("/timers").await.json()["data"]["total"], 0);
    service.stop().await;
}

async fn a_head_that_is_too_large_is_refused(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MIN_DELAY", "5s")]).await;
    let client = service.client();
    let long = "x".repeat(16 * 1024);
    let get = |path: &str| client.request("GET", path).header("x-api-key", API_KEY);
    let many = (0..64).fold(get("/timers"), |request, n| request.header(format!("x-{n}"), "y"));
    for (what, request, status) in [
        ("a long path", get(&format!("/timers/{long}")), 414),
        ("a long query", get(&format!("/timers?status={long}")), 414),
        ("a long header", get("/timers").header("x-long", &long), 431),
        ("many headers", many, 431),
    ] {
        let answer = client.send_raw(request, "").await.expect("an answer");
        assert_refused(&answer, status, 2, "", what);
        assert!(!answer.message().is_empty(), "{what}: {}", answer.text);
    }
    assert_eq!(client.get("/timers").await.status, 200, "the next request is answered");
    service.stop().await;
}

async fn what_lies_beyond_the_horizon_is_refused_by_name(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start_with(&backend, &[("MAX_HORIZON", "1h")]).await;
    let client = service.client();
    let id = client.create(&json!({"delay": "59m", "callback": {"type": "http", "url": "http://a/"}})).await;
    let beyond = crate::rig::instant(now() + 3_700_000_000);
    for (body, start) in [
        (format!(r#"{{"execute_at":"{beyond}",{CALLBACK}}}"#), "execute_at must not be more than 1h ahead"),
        (format!(r#"{{"delay":"61m",{CALLBACK}}}"#), "delay must not be more than 1h ahead"),
    ] {
        assert_refused(&client.post(&body).await, 400, 2, start, &body);
    }
    for (patch, start) in [
        (json!({"execute_at": beyond}), "execute_at must not be more than 1h ahead"),
        (json!({"delay": "61m"}), "delay must not be more than 1h ahead"),
    ] {
        assert_refused(&client.try_update(&id, &patch).await.expect("an answer"), 400, 2, start, &patch.to_string());
    }
    assert_eq!(client.get("/timers").await.json()["data"]["total"], 1);
    service.stop().await;
}

fn assert_refused(answer: &Answer, status: u16, code: i64, start: &str, what: &str) {
    let shown: String = what.chars().take(200).collect();
    assert_eq!(answer.status, status, "{shown}: {}", answer.text);
    let json = answer.json();
    assert_eq!(json["code"], code, "{shown}: {}", answer.text);
    assert_eq!(json["data"], Value::Null, "{shown}: {}", answer.text);
    assert_eq!(json.as_object().map(serde_json::Map::len), Some(3), "{shown}: {}", answer.text);
    assert!(answer.message().starts_with(start), "{shown}: {}", answer.text);
    assert!(answer.headers.contains_key("x-request-id"), "{shown}: {:?}", answer.headers);
}

fn without_time_left(mut timer: Value) -> Value {
    timer["time_left"] = Value::Null;
    timer
}
