use super::in_short_words;
use commands::CommandError;
use domain::{Invalid, KindSet};
use serde_json::{Value, json};

use crate::rig::{Rig, request};

const HOOK: &str = r#"{"type":"http","url":"http://a.example/hook"}"#;

fn long(rest: &str) -> String {
    format!(r#"{{"delay":"1h","callback":{HOOK}{rest}}}"#)
}

fn calling(callback: &str) -> String {
    format!(r#"{{"delay":"1h","callback":{callback}}}"#)
}

fn http(rest: &str) -> String {
    calling(&format!(r#"{{"type":"http","url":"http://a.example"{rest}}}"#))
}

#[tokio::test]
async fn a_timer_is_created_with_every_field_of_the_answer() {
    let rig = Rig::new();
    let reply = rig.call("POST", "/timers", &format!(r#"{{"execute_at":"2030-01-01T03:30:00+02:00","callback":{HOOK}}}"#)).await;
    assert_eq!(reply.status, 201);
    let json = reply.json();
    assert_eq!((&json["code"], &json["message"]), (&json!(0), &json!("timer created successfully")));
    let mut data = json["data"].clone();
    let id = data["id"].take();
    assert_eq!(
        data,
        json!({
            "id": null, "namespace": "default", "key": null, "group": null, "status": "pending", "callback_type": "http",
            "execute_at": "2030-01-01T01:30:00Z", "time_left": 5400, "executed_at": null,
            "created_at": "2030-01-01T00:00:00Z", "updated_at": "2030-01-01T00:00:00Z", "revision": 1,
        })
    );
    let nudged = rig.nudged.lock().unwrap().clone();
    assert_eq!(nudged.len(), 1);
    assert_eq!(nudged[0].id.to_string(), id.as_str().unwrap());
}

#[tokio::test]
async fn the_trace_of_a_request_is_kept_with_its_timers() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let v1 = r#"{"id":"a","executeAt":"2030-01-01T01:00:00Z","callbackUrl":"http://a.example/"}"#.to_owned();
    for (path, body) in [
        ("/timers", long("")),
        ("/timers", r#"{"hours":1,"url":"http://a.example/"}"#.to_owned()),
        ("/timers/batch", format!(r#"{{"timers":[{},{}]}}"#, long(""), long(r#","key":"k""#))),
        ("/api/v1/timers", v1.clone()),
        ("/api/v1/timers/create", v1),
    ] {
        for (given, kept) in [(parent, Some(parent.to_owned())), ("nonsense", None)] {
            let rig = Rig::new();
            let mut request = request("POST", path, &body);
            request.headers_mut().insert("traceparent", given.parse().unwrap());
            let reply = rig.send(request).await;
            assert!(reply.status.is_success(), "{}", reply.text);
            for claimed in rig.claim_all().await {
                let trace = claimed.timer.unwrap().definition.options.trace;
                assert_eq!(trace.map(|trace| trace.traceparent()), kept, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn every_good_request_is_taken() {
    let longest_key = "k".repeat(255);
    let headers: Vec<String> = (0..32).map(|n| format!(r#""x-{n}":"v""#)).collect();
    for body in [
        long(""),
        format!(r#"{{"execute_at":"2030-01-01T00:00:05Z","callback":{HOOK}}}"#),
        format!(r#"{{"execute_at":"2030-12-31T23:59:59.999999Z","callback":{HOOK}}}"#),
        format!(r#"{{"delay":"5s","callback":{HOOK}}}"#),
        format!(r#"{{"delay":"PT15M","callback":{HOOK}}}"#),
        format!(r#"{{"delay":"365d","callback":{HOOK}}}"#),
        long(r#","namespace":"tenant é","key":"a","on_conflict":"replace""#),
        long(&format!(r#","key":"{longest_key}""#)),
        long(r#","metadata":null,"correlation_id":null,"retry_policy":null"#),
        long(r#","metadata":[1,"a",{"b":null}],"correlation_id":"c-1","delivery":"at_most_once""#),
        long(r#","retry_policy":{}"#),
        long(
            r#","retry_policy":{"max_retries":1000,"initial_interval":"1ms","backoff_multiplier":1,"max_interval":"1d","max_duration":"1w"}"#,
        ),
        http(&format!(r#","headers":{{{}}}"#, headers.join(","))),
        http(r#","payload":"\u0000","timeout":"100ms","protocol":"timer""#),
        http(r#","payload":null,"timeout":"5m""#),
        r#"{"seconds":1,"url":"http://a.example"}"#.to_owned(),
        r#"{"hours":1,"minutes":30,"seconds":0,"url":"https://a.example/x?y=z"}"#.to_owned(),
        r#"{"minutes":2.0,"url":"http://a.example"}"#.to_owned(),
        format!("  {}\r\n", long("")),
        r#"{"\u0064elay":"1h","callback":{"type":"http","url":"http://a"}}"#.to_owned(),
    ] {
        let reply = Rig::new().call("POST", "/timers", &body).await;
        assert_eq!(reply.status, 201, "{body}: {}", reply.text);
    }
}

#[tokio::test]
async fn every_bad_request_is_refused_by_name_and_stores_nothing() {
    let rig = Rig::new();
    let many_headers: Vec<String> = (0..33).map(|n| format!(r#""x-{n}":"v""#)).collect();
    let nested = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let very_nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let requestable = format!("callback.type must be {}", KindSet::REQUESTABLE);
    let table: Vec<(String, &str)> = vec![
        // No object at all.
        ("{".into(), "the body is not valid JSON"),
        ("nonsense".into(), "the body is not valid JSON"),
        (r#"{"delay":"1h",}"#.into(), "the body is not valid JSON"),
        (r#"{"delay":"1h"} x"#.into(), "the body is not valid JSON"),
        ("\u{feff}{}".into(), "the body is not valid JSON"),
        ("{\"delay\":\"1\u{0}h\"}".into(), "the body is not valid JSON"),
        ("[]".into(), "the body must be a JSON object"),
        ("null".into(), "the body must be a JSON object"),
        ("\"text\"".into(), "the body must be a JSON object"),
        ("7".into(), "the body must be a JSON object"),
        (" ".into(), "the body is not valid JSON"),
        (very_nested.clone(), "the body must be a JSON object"),
        // Names.
        (long(r#","dealy":"1h""#), "'dealy' is not a known field"),
        (long(r#","":1"#), "'' is not a known field"),
        (long(r#","Delay":"1h""#), "'Delay' is not a known field"),
        (long(r#","status":"pending""#), "'status' is not a known field"),
        (long(&format!(r#","{}":1"#, "x".repeat(500))), "'xxxxxxxx"),
        (long(r#","delay":"2h""#), "delay must not be given twice"),
        (long(&format!(r#","callback":{HOOK}"#)), "callback must not be given twice"),
        (long(r#","d\u0065lay":"2h""#), "delay must not be given twice"),
        // When.
        ("{}".into(), "execute_at or delay is required"),
        (format!(r#"{{"callback":{HOOK}}}"#), "execute_at or delay is required"),
        (long(r#","execute_at":"2030-02-01T00:00:00Z""#), "delay must not be given together with execute_at"),
        (format!(r#"{{"execute_at":null,"callback":{HOOK}}}"#), "execute_at must be a string"),
        (format!(r#"{{"execute_at":1893456000,"callback":{HOOK}}}"#), "execute_at must be a string"),
        (format!(r#"{{"execute_at":"","callback":{HOOK}}}"#), "execute_at must be an RFC 3339"),
        (format!(r#"{{"execute_at":"tomorrow","callback":{HOOK}}}"#), "execute_at must be an RFC 3339"),
        (format!(r#"{{"execute_at":"2030-01-02","callback":{HOOK}}}"#), "execute_at must be an RFC 3339"),
        (format!(r#"{{"execute_at":"2030-01-02T00:00:00","callback":{HOOK}}}"#), "execute_at must be an RFC 3339"),
        (format!(r#"{{"execute_at":"2030-02-30T00:00:00Z","callback":{HOOK}}}"#), "execute_at must be an RFC 3339"),
        (format!(r#"{{"execute_at":"9999-12-31T23:59:59-23:00","callback":{HOOK}}}"#), "execute_at must "),
        (format!(r#"{{"execute_at":"2029-12-31T23:59:59Z","callback":{HOOK}}}"#), "execute_at must be in the future"),
        (format!(r#"{{"execute_at":"0000-01-01T00:00:00Z","callback":{HOOK}}}"#), "execute_at must be in the future"),
        (format!(r#"{{"execute_at":"2030-01-01T00:00:04.999999Z","callback":{HOOK}}}"#), "execute_at must be in the future"),
        (
            format!(r#"{{"execute_at":"2031-01-01T00:00:00.000001Z","callback":{HOOK}}}"#),
            "execute_at must not be more than 365d ahead",
        ),
        (format!(r#"{{"delay":90,"callback":{HOOK}}}"#), "delay must be a string"),
        (format!(r#"{{"delay":null,"callback":{HOOK}}}"#), "delay must be a string"),
        (format!(r#"{{"delay":"\ud800","callback":{HOOK}}}"#), "delay must be a string"),
        (format!(r#"{{"delay":"90","callback":{HOOK}}}"#), "delay must be a duration"),
        (format!(r#"{{"delay":"","callback":{HOOK}}}"#), "delay must be a duration"),
        (format!(r#"{{"delay":"-1h","callback":{HOOK}}}"#), "delay must be a duration"),
        (format!(r#"{{"delay":"1h\u0000","callback":{HOOK}}}"#), "delay must be a duration"),
        (format!(r#"{{"delay":"4999999us","callback":{HOOK}}}"#), "delay must be at least 5s"),
        (format!(r#"{{"delay":"366d","callback":{HOOK}}}"#), "delay must not be more than 365d ahead"),
        (format!(r#"{{"delay":"9000000d","callback":{HOOK}}}"#), "delay must not lead beyond the year 9999"),
        // Whom.
        (r#"{"delay":"1h"}"#.into(), "callback is required"),
        (calling("null"), "callback must be an object"),
        (calling("[]"), "callback must be an object"),
        (calling("\"http://a\""), "callback must be an object"),
        (calling("{}"), "callback.type is required"),
        (calling(r#"{"type":"HTTP","url":"http://a"}"#), &requestable),
        (calling(r#"{"type":1,"url":"http://a"}"#), "callback.type must be a string"),
        (calling(r#"{"type":"http"}"#), "callback.url is required"),
        (calling(r#"{"type":"http","url":null}"#), "callback.url is required"),
        (calling(r#"{"type":"http","url":""}"#), "callback.url must be a valid"),
        (calling(r#"{"type":"http","url":"a.example"}"#), "callback.url must be a valid"),
        (calling(r#"{"type":"http","url":"ftp://a.example"}"#), "callback.url must be a valid"),
        (calling(r#"{"type":"http","url":"javascript:alert(1)"}"#), "callback.url must be a valid"),
        (calling(r#"{"type":"http","url":"http://a:99999"}"#), "callback.url must be a valid"),
        (calling(r#"{"type":"http","url":"http://user:secret@a.example"}"#), "callback.url must not contain credentials"),
        (
            calling(&format!(r#"{{"type":"http","url":"http://a/{}"}}"#, "x".repeat(2048))),
            "callback.url must not be longer than 2048",
        ),
        (
            calling(&format!(r#"{{"type":"http","url":"http://a/{}"}}"#, "é".repeat(1000))),
            "callback.url must not be longer than 2048",
        ),
        (calling(r#"{"type":"http","url":"http://169.254.169.254/latest"}"#), "callback.url must not reach a denied address"),
        (http(r#","uri":"x""#), "callback.'uri' is not a known field"),
        (http(r#","url":"http://b""#), "callback.url must not be given twice"),
        (http(r#","method":"GET""#), "callback.'method' is not a known field"),
        (http(r#","topic":"x""#), "callback.topic does not belong"),
        (http(r#","jetstream":true"#), "callback.jetstream does not belong"),
        (http(r#","headers":[]"#), "callback.headers must be an object of strings"),
        (http(r#","headers":{"a":1}"#), "callback.headers.a must be a string"),
        (http(r#","headers":{"a":null}"#), "callback.headers.a must be a string"),
        (http(r#","headers":{"Host":"b"}"#), "callback.headers.Host is set by the service"),
        (http(r#","headers":{"content-length":"5"}"#), "callback.headers.content-length is set by the service"),
        (http(r#","headers":{"Transfer-Encoding":"chunked"}"#), "callback.headers.Transfer-Encoding is set"),
        (http(r#","headers":{"connection":"close"}"#), "callback.headers.connection is set"),
        (http(r#","headers":{"X-Timer-Id":"1"}"#), "callback.headers.X-Timer-Id is set"),
        (http(r#","headers":{"webhook-signature":"1"}"#), "callback.headers.webhook-signature is set"),
        (http(r#","headers":{"a b":"1"}"#), "callback.headers must have valid HTTP header names"),
        (http(r#","headers":{"":"1"}"#), "callback.headers must have valid HTTP header names"),
        (http(r#","headers":{"a":"x\r\ny: z"}"#), "callback.headers.a must be printable ASCII"),
        (http(r#","headers":{"a":"1","A":"2"}"#), "callback.headers.A must not be given twice"),
        (http(&format!(r#","headers":{{{}}}"#, many_headers.join(","))), "callback.headers must not be more than 32"),
        (http(&format!(r#","headers":{{"a":"{}"}}"#, "v".repeat(4096))), "callback.headers.a must not be longer"),
        (http(&format!(r#","payload":"{}""#, "x".repeat(256 * 1024))), "callback.payload must not be longer"),
        (http(&format!(r#","payload":{nested}"#)), "callback.payload must not be nested deeper than 64"),
        (http(r#","timeout":30"#), "callback.timeout must be a string"),
        (http(r#","timeout":"99ms""#), "callback.timeout must lie between"),
        (http(r#","timeout":"301s""#), "callback.timeout must lie between"),
        (http(r#","protocol":"grpc""#), "callback.protocol must be webhook or timer"),
        (calling(r#"{"type":"nats","topic":"a.b"}"#), "callback.type must be http: no NATS server is configured"),
        (calling(r#"{"type":"nats","topic":"a.>"}"#), "callback.topic must be a NATS subject"),
        (calling(r#"{"type":"nats","topic":"$JS.API"}"#), "callback.topic must not start with"),
        (calling(r#"{"type":"nats"}"#), "callback.topic is required"),
        // The rest of the long form.
        (long(r#","namespace":"""#), "namespace must have 1 to 255 characters"),
        (long(r#","namespace":null"#), "namespace must be a string"),
        (long(r#","namespace":5"#), "namespace must be a string"),
        (long(r#","namespace":"a\u0000b""#), "namespace must not contain control characters"),
        (long(&format!(r#","namespace":"{}""#, "é".repeat(256))), "namespace must have 1 to 255 characters"),
        (long(r#","key":"""#), "key must have 1 to 255 characters"),
        (long(r#","key":null"#), "key must be a string"),
        (long(r#","key":{}"#), "key must be a string"),
        (long(r#","key":"a\nb""#), "key must not contain control characters"),
        (long(r#","key":"\u0000""#), "key must not contain control characters"),
        (long(&format!(r#","key":"{}""#, "k".repeat(256))), "key must have 1 to 255 characters"),
        (long(r#","on_conflict":"replace""#), "on_conflict must not be given without key"),
        (long(r#","key":"a","on_conflict":"merge""#), "on_conflict must be reject, replace, keep, postpone, earliest or latest"),
        (long(r#","key":"a","on_conflict":null"#), "on_conflict must be a string"),
        (long(r#","key":"a","on_conflict":true"#), "on_conflict must be a string"),
        (long(r#","correlation_id":"""#), "correlation_id must have 1 to 255 characters"),
        (long(r#","correlation_id":7"#), "correlation_id must be a string"),
        (long(r#","correlation_id":"a\tb""#), "correlation_id must not contain control characters"),
        (long(r#","delivery":"exactly_once""#), "delivery must be at_least_once or at_most_once"),
        (long(r#","delivery":null"#), "delivery must be a string"),
        (long(r#","delivery":1"#), "delivery must be a string"),
        (long(&format!(r#","metadata":"{}""#, "m".repeat(64 * 1024))), "metadata must not be longer than 65536 bytes"),
        (long(&format!(r#","metadata":{nested}"#)), "metadata must not be nested deeper than 64"),
        (long(&format!(r#","metadata":{very_nested}"#)), "metadata must not be longer than 65536 bytes"),
        (long(r#","retry_policy":3"#), "retry_policy must be an object"),
        (long(r#","retry_policy":{"retries":3}"#), "retry_policy.'retries' is not a known field"),
        (long(r#","retry_policy":{"max_retries":-1}"#), "retry_policy.max_retries must be a whole number from 0 to 1000"),
        (long(r#","retry_policy":{"max_retries":1001}"#), "retry_policy.max_retries must be a whole number from 0 to 1000"),
        (
            long(r#","retry_policy":{"backoff_multiplier":0.99}"#),
            "retry_policy.backoff_multiplier must be a number from 1 to 100",
        ),
        (long(r#","retry_policy":{"initial_interval":"0s"}"#), "retry_policy.initial_interval must be at least 1ms"),
        (long(r#","retry_policy":{"max_interval":"x"}"#), "retry_policy.max_interval must be a duration"),
        (long(r#","retry_policy":{"max_duration":5}"#), "retry_policy.max_duration must be a string"),
        // The short form.
        (r#"{"seconds":5}"#.into(), "url is required"),
        (r#"{"url":"http://a"}"#.into(), "hours, minutes and seconds must together be at least 1 second"),
        (r#"{"hours":0,"url":"http://a"}"#.into(), "hours, minutes and seconds must together be at least 1 second"),
        (r#"{"hours":-1,"url":"http://a"}"#.into(), "hours must be a whole number"),
        (r#"{"minutes":1.5,"url":"http://a"}"#.into(), "minutes must be a whole number"),
        (r#"{"seconds":"5","url":"http://a"}"#.into(), "seconds must be a whole number"),
        (r#"{"seconds":null,"url":"http://a"}"#.into(), "seconds must be a whole number"),
        (r#"{"seconds":4294967296,"url":"http://a"}"#.into(), "seconds must be a whole number"),
        (r#"{"seconds":1e400,"url":"http://a"}"#.into(), "seconds must be a whole number"),
        (r#"{"hours":9000,"url":"http://a"}"#.into(), "hours, minutes and seconds must not be more than 365d ahead"),
        (r#"{"seconds":5,"url":7}"#.into(), "url must be a string"),
        (r#"{"seconds":5,"url":"mailto:a@b"}"#.into(), "url must be a valid http or https URL"),
        (r#"{"seconds":5,"url":"http://u:p@a"}"#.into(), "url must not contain credentials"),
        (format!(r#"{{"seconds":5,"url":"http://a/{}"}}"#, "x".repeat(2020)), "url must not be longer than 2048 characters"),
        (
            r#"{"seconds":5,"url":"http://a","key":"k"}"#.into(),
            "seconds belongs to the short form and must not be given together with key",
        ),
        (
            r#"{"seconds":5,"url":"http://a","delay":"1h"}"#.into(),
            "seconds belongs to the short form and must not be given together with delay",
        ),
        (long(r#","url":"http://a""#), "url belongs to the short form and must not be given together with delay"),
    ];
    assert!(table.len() >= 80);
    for (body, start) in table {
        let reply = rig.call("POST", "/timers", &body).await;
        let message = reply.refused(400, 2);
        let shown: String = body.chars().take(300).collect();
        assert!(message.starts_with(start), "{shown}\n said: {message}\n not: {start}");
        assert!(message.len() < 400, "{message}");
    }
    assert_eq!(rig.count().await, 0);
    assert!(rig.nudged.lock().unwrap().is_empty());
}

#[tokio::test]
async fn json_survives_to_the_byte() {
    let rig = Rig::new();
    for text in [
        r#"{"b":1.10,"a":12345678901234567890,"a":2}"#,
        r#"[ 1 , -0, 1e400, 0.1e-7 ]"#,
        r#""\u00e9 é e\u0301 \u0000 \/ 😀""#,
        r#"{"nested":{"deep":[[[]]]}, "t" : true}"#,
        "false",
        "\"\"",
    ] {
        let body =
            format!(r#"{{"delay":"1h","callback":{{"type":"http","url":"http://a","payload":{text}}},"metadata":{text}}}"#);
        let id = rig.created(&body).await;
        let reply = rig.get(&format!("/timers/{id}")).await;
        assert!(reply.text.contains(&format!(r#""payload":{text},"#)), "{}", reply.text);
        assert!(reply.text.contains(&format!(r#""metadata":{text},"#)), "{}", reply.text);
    }
}

#[tokio::test]
async fn the_short_form_counts_down_and_appends_the_id() {
    let rig = Rig::new();
    let reply = rig.call("POST", "/timers", r#"{"hours":1,"minutes":30,"seconds":0,"url":"http://a.example/done/?x=y"}"#).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.data("time_left"), 5400);
    let id = reply.data("id").as_str().unwrap().to_owned();
    let detail = rig.get(&format!("/timers/{id}")).await;
    assert_eq!(detail.data("callback_config")["url"], format!("http://a.example/done/{id}?x=y"));
    assert_eq!(detail.data("callback_config")["type"], "http");
}

#[tokio::test]
async fn a_repeated_key_is_resolved_as_asked() {
    const OTHER: &str = r#"{"type":"http","url":"http://b.example"}"#;
    let keyed = |callback: &str, delay: &str, mode: &str| {
        format!(r#"{{"delay":"{delay}","callback":{callback},"key":"k","on_conflict":"{mode}"}}"#)
    };
    let exists = (200, "timer already exists");
    let replaced = (200, "timer replaced successfully");
    let refused = (409, "a timer with this key exists and has other content");
    let busy = (409, "the timer with this key is being delivered: try again when it has ended");
    // mode, the same content, other content, another time; for a pending, an executing and a finished timer
    for (mode, pending, executing, finished) in [
        ("reject", [exists, refused, refused], [exists, exists, exists], [exists, refused, refused]),
        ("replace", [replaced; 3], [busy; 3], [replaced; 3]),
        ("keep", [replaced; 3], [exists; 3], [exists; 3]),
    ] {
        for (stage, expected) in [("pending", pending), ("executing", executing), ("completed", finished)] {
            for (again, (status, message)) in
                [keyed(HOOK, "1h", mode), keyed(OTHER, "1h", mode), keyed(HOOK, "2h", mode)].iter().zip(expected)
            {
                let rig = Rig::new();
                let id = rig.created(&keyed(HOOK, "1h", "reject")).await;
                match stage {
                    "executing" => drop(rig.claim_all().await),
                    "completed" => rig.complete_all().await,
                    _ => {}
                }
                let reply = rig.call("POST", "/timers", again).await;
                assert_eq!((reply.status.as_u16(), reply.message().as_str()), (status, message), "{mode} {stage} {again}");
                assert_eq!(rig.count().await, 1);
                if status == 200 {
                    assert_eq!(reply.data("id"), id);
                } else {
                    reply.refused(409, 6);
                }
            }
        }
    }
}

#[tokio::test]
async fn the_same_key_in_another_namespace_is_another_timer() {
    let rig = Rig::new();
    rig.created(&long(r#","key":"k""#)).await;
    rig.created(&long(r#","key":"k","namespace":"b""#)).await;
    assert_eq!(rig.count().await, 2);
}

#[tokio::test]
async fn only_what_has_changed_is_told_to_the_scheduler() {
    let rig = Rig::new();
    for _ in 0..3 {
        rig.call("POST", "/timers", &long(r#","key":"k""#)).await;
    }
    assert_eq!(rig.nudged.lock().unwrap().len(), 1);
    rig.call("POST", "/timers", &long(r#","key":"k","on_conflict":"replace""#)).await;
    assert_eq!(rig.nudged.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_body_must_be_json_and_say_so() {
    let rig = Rig::new();
    let with = |headers: &[(&'static str, &'static str)], body: &str| {
        let mut request = request("POST", "/timers", "");
        for (name, value) in headers {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        *request.body_mut() = axum::body::Body::from(body.to_owned());
        request
    };
    for (headers, status) in [
        (&[("content-type", "application/json")][..], 201),
        (&[("content-type", "application/vnd.x+json;charset=UTF-8")], 201),
        (&[], 415),
        (&[("content-type", "text/plain")], 415),
        (&[("content-type", "application/x-www-form-urlencoded")], 415),
        (&[("content-type", "application/json; charset=utf-16")], 415),
        (&[("content-type", "application/json"), ("content-type", "application/json")], 415),
        (&[("content-type", "application/json"), ("content-encoding", "gzip")], 415),
    ] {
        let reply = rig.send(with(headers, &long(""))).await;
        assert_eq!(reply.status, status, "{headers:?}");
        if status == 415 {
            reply.refused(415, 2);
        }
    }
    assert_eq!(rig.send(with(&[], "")).await.refused(400, 2), "the body is missing: send a JSON object");
    let mut request = with(&[("content-type", "application/json")], "");
    *request.body_mut() = axum::body::Body::from(b"{\"delay\":\"\xff\"}".to_vec());
    assert_eq!(rig.send(request).await.refused(400, 2), "the body must be valid UTF-8");
}

#[tokio::test]
async fn a_body_of_more_than_a_mebibyte_is_refused() {
    let rig = Rig::new();
    let body = format!(r#"{{"delay":"{}"}}"#, "x".repeat(1024 * 1024));
    let reply = rig.call("POST", "/timers", &body).await;
    assert_eq!(reply.refused(413, 2), "the body must not be larger than 1 MiB");
    assert_eq!(reply.headers["connection"], "close");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_a_408() {
    let rig = Rig::new();
    let mut request = request("POST", "/timers", "{}");
    let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    *request.body_mut() = axum::body::Body::from_stream(never);
    assert_eq!(rig.send(request).await.refused(408, 2), "the body did not arrive in time");
}

#[test]
fn complaints_about_the_short_form_name_its_own_fields() {
    for (field, named) in [("delay", "hours, minutes and seconds"), ("callback.url", "url"), ("key", "key")] {
        let complaint = in_short_words(CommandError::Invalid(Invalid::new(field, "is wrong"))).to_string();
        assert_eq!(complaint, format!("{named} is wrong"));
    }
}

const CHOSEN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn chosen(rest: &str) -> String {
    format!(r#"{{"delay":"1h","callback":{HOOK},"id":"{CHOSEN}"{rest}}}"#)
}

#[tokio::test]
async fn a_chosen_id_is_the_same_timer_only_with_the_same_content() {
    let rig = Rig::new();
    let created = rig.call("POST", "/timers", &chosen("")).await;
    assert_eq!((created.status.as_u16(), created.data("id"), created.data("key")), (201, CHOSEN.into(), Value::Null));
    rig.clock.advance(domain::Span::from_secs(60));
    let repeated = rig.call("POST", "/timers", &chosen("")).await;
    assert_eq!((repeated.status.as_u16(), repeated.message().as_str()), (200, "timer already exists"));
    for other in [r#","metadata":1"#, r#","namespace":"b""#, r#","correlation_id":"c""#] {
        let message = rig.call("POST", "/timers", &chosen(other)).await.refused(409, 6);
        assert_eq!(message, "a timer with this id exists and has other content", "{other}");
    }
    let batch = format!(r#"{{"timers":[{},{}]}}"#, chosen(""), chosen(r#","metadata":1"#));
    let results = rig.call("POST", "/timers/batch", &batch).await.data("results");
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(200), &json!(409)));
    // The same request is known again after its time has passed, and after the timer has fired.
    let at = r#"{"execute_at":"2030-01-01T02:00:00Z","callback":{"type":"http","url":"http://a"},"id":"01890a5d-ac96-774b-bcce-b302099a8058"}"#;
    assert_eq!(rig.call("POST", "/timers", at).await.status, 201);
    rig.complete_all().await;
    rig.clock.advance(domain::Span::from_secs(86_400));
    assert_eq!(rig.call("POST", "/timers", at).await.message(), "timer already exists");
    let other = at.replace("http://a", "http://b");
    assert_eq!(rig.call("POST", "/timers", &other).await.refused(409, 6), "a timer with this id exists and has other content");
    assert_eq!(rig.count().await, 2);
}

#[tokio::test]
async fn a_chosen_id_tells_nothing_of_another_tenant() {
    let rig = Rig::new();
    let theirs = chosen(r#","namespace":"a","metadata":"secret""#);
    assert_eq!(rig.call("POST", "/timers", &theirs).await.status, 201);
    let tenant = rig.issued(r#"["b"]"#, "write").await;
    let own = chosen(r#","namespace":"b""#);
    // Pending, executing, and after its end; by itself, in a batch, and when the time of the request has passed.
    let past = r#"{"execute_at":"2029-12-31T00:00:00Z","callback":{"type":"http","url":"http://a"},"namespace":"b","id":"01890a5d-ac96-774b-bcce-b302099a8057"}"#;
    let check = async || {
        for body in [&own, past] {
            let reply = rig.call_with(&tenant, "POST", "/timers", body).await;
            assert_eq!(reply.refused(409, 6), "a timer with this id exists and has other content");
        }
        let batch = format!(r#"{{"timers":[{own}]}}"#);
        let result = rig.call_with(&tenant, "POST", "/timers/batch", &batch).await.data("results")[0].clone();
        assert_eq!(result, json!({"status": 409, "message": "a timer with this id exists and has other content"}));
    };
    check().await;
    let claimed = rig.claim_all().await;
    check().await;
    rig.store.settle(&[claimed[0].settle(domain::Next::Completed { at: crate::rig::NOW })]).await.unwrap();
    check().await;
    assert_eq!(rig.call_with(&tenant, "GET", &format!("/timers/{CHOSEN}"), "").await.refused(404, 3), "timer not found");
}

#[tokio::test]
async fn a_chosen_id_is_a_uuid_of_version_7_and_stands_alone() {
    let rig = Rig::new();
    for (body, message) in [
        (chosen(r#","key":"k""#), "id must not be given together with key"),
        (chosen(r#","on_conflict":"replace""#), "on_conflict must not be given without key"),
        (chosen("").replace("774b", "474b"), "id must be a UUID of version 7, written with hyphens"),
        (chosen("").replace(CHOSEN, "x"), "id must be a UUID of version 7, written with hyphens"),
        (chosen("").replace(&format!("\"{CHOSEN}\""), "7"), "id must be a string"),
        (chosen("").replace(&format!("\"{CHOSEN}\""), "null"), "id must be a string"),
        (
            format!(r#"{{"seconds":90,"url":"http://a","id":"{CHOSEN}"}}"#),
            "seconds belongs to the short form and must not be given together with id",
        ),
    ] {
        assert_eq!(rig.call("POST", "/timers", &body).await.refused(400, 2), message, "{body}");
    }
    assert_eq!(rig.count().await, 0);
}
