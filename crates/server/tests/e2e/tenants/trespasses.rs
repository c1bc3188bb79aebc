//! What a tenant can ask for that belongs to another tenant, and the answer to each request.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CLOSED, FAR, Tenant};
use crate::rig::{Answer, Client};

/// The operations of the API that reach no timer: how the service is, and who asks.
const NO_TIMER: [(&str, &str); 6] =
    [("GET", "/docs"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/ping"), ("GET", "/whoami")];
const GROUP: &str = "g";

/// A request that a tenant must not make with success.
pub struct Trespass {
    method: &'static str,
    path: String,
    body: Option<Value>,
    answer: Expected,
}

/// What the client of another tenant is told.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// There is no such timer.
    Missing,
    /// There is no such operation.
    NoOperation,
    /// The namespace that was named is another tenant's.
    Closed,
    /// It takes the administrator's key.
    Administrator,
    /// The request names no namespace, and is about the client's own timers only.
    OwnOnly,
}

impl Expected {
    pub fn is_told_by(self, answer: &Answer, call: &str) {
        let (status, code, word, message) = match self {
            Self::Missing => (404, 3, "TIMER_NOT_FOUND", "timer not found"),
            Self::NoOperation => (404, 3, "", "operation not found"),
            Self::Closed => (403, 4, "FORBIDDEN", CLOSED),
            Self::Administrator => (403, 4, "FORBIDDEN", "this takes the administrator's key"),
            Self::OwnOnly => return assert_eq!(answer.status, 200, "{call}: {}", answer.text),
        };
        let body = answer.json();
        assert_eq!((answer.status, answer.message().as_str()), (status, message), "{call}: {body}");
        if call.contains("/api/v1") {
            assert_eq!((&body["error"], &body["details"]), (&json!(word), &json!({})), "{call}");
        } else {
            assert_eq!((&body["code"], &body["data"]), (&json!(code), &Value::Null), "{call}");
        }
    }
}

impl Trespass {
    fn new(method: &'static str, path: impl Into<String>, body: Option<Value>, answer: Expected) -> Self {
        Self { method, path: path.into(), body, answer }
    }

    async fn commit(&self, intruder: &Tenant, victim: &Tenant) {
        let Self { method, path, body, answer: expected } = self;
        let call = format!("{method} {path} {body:?} by {}", intruder.namespace);
        let answer = intruder.client.send(method, path, body.as_ref()).await;
        expected.is_told_by(&answer, &call);
        let url = victim.receiver.url("");
        let destination = url.trim_start_matches("http://").trim_end_matches('/');
        for secret in [destination, &format!(" of {}", victim.namespace), &format!("\"{}\"", victim.namespace)] {
            assert!(!answer.text.contains(secret), "{call} shows {secret}: {}", answer.text);
        }
    }
}

/// Every request that names this timer of `victim`, by its id or by its key.
pub fn on_timer(victim: &Tenant, key: &str, id: &str) -> Vec<Trespass> {
    use Expected::{Closed, Missing, NoOperation};
    let name = victim.namespace;
    let encoded = key.replace(' ', "%20").replace('/', "%2F");
    let mut all = vec![
        Trespass::new("GET", format!("/operations/{id}"), None, NoOperation),
        Trespass::new("DELETE", format!("/operations/{id}"), None, NoOperation),
    ];
    for one in [format!("/timers/{id}"), format!("/namespaces/{name}/timers/{encoded}")] {
        all.extend([
            Trespass::new("GET", &one, None, Missing),
            Trespass::new("PUT", &one, Some(json!({"delay": "1s"})), Missing),
            Trespass::new("PUT", &one, Some(json!({"metadata": null})), Missing),
            Trespass::new("PUT", &one, Some(json!({})), Missing),
            Trespass::new("DELETE", &one, None, Missing),
            Trespass::new("GET", format!("{one}/attempts"), None, Missing),
        ]);
        let verbs = ["fire", "retry", "ping", "pause", "resume"];
        all.extend(verbs.map(|verb| Trespass::new("POST", format!("{one}/{verb}"), None, Missing)));
    }
    let by_name = format!("/api/v1/timers/{name}/{encoded}");
    all.extend([
        Trespass::new("GET", &by_name, None, Missing),
        Trespass::new("PUT", &by_name, Some(json!({"executeAt": FAR, "payload": "stolen"})), Missing),
        Trespass::new("PUT", &by_name, Some(json!({})), Missing),
        Trespass::new("DELETE", &by_name, None, Missing),
    ]);
    for group in ["namespace", "groupId"] {
        for verb in ["get", "update", "delete"] {
            let mut selected = json!({group: name, "timerId": key});
            if verb == "update" {
                selected["payload"] = json!("stolen");
            }
            all.push(Trespass::new("POST", format!("/api/v1/timers/{verb}"), Some(selected), Missing));
        }
        for path in ["/api/v1/timers", "/api/v1/timers/create"] {
            all.push(Trespass::new("POST", path, Some(victim.v1_timer(group, key)), Closed));
        }
    }
    for mode in ["reject", "replace", "keep", "postpone", "earliest", "latest"] {
        let mut timer = victim.timer(key);
        timer["on_conflict"] = json!(mode);
        timer["callback"]["payload"] = json!("stolen");
        if mode == "postpone" {
            timer.as_object_mut().expect("an object").remove("execute_at");
            timer["delay"] = json!("1h");
        }
        all.push(Trespass::new("POST", "/timers", Some(timer), Closed));
    }
    all
}

/// Every request about many timers, or about what is made from them: with the namespace of `victim`, and without any.
pub fn on_namespace(victim: &Tenant) -> Vec<Trespass> {
    use Expected::{Administrator, Closed, OwnOnly};
    let name = victim.namespace;
    let url = victim.receiver.url("");
    let destination = url.trim_start_matches("http://").trim_end_matches('/');
    let mut all = Vec::new();
    for path in [
        "/timers",
        "/timers/count",
        "/timers.csv",
        "/timers.json",
        "/timers.ndjson",
        "/stats/due",
        "/stats/fired",
        "/destinations",
    ] {
        all.push(Trespass::new("GET", format!("{path}?namespace={name}"), None, Closed));
        all.push(Trespass::new("GET", path, None, OwnOnly));
    }
    for path in ["/namespaces", "/operations"] {
        all.push(Trespass::new("GET", path, None, OwnOnly));
    }
    // Without a namespace it is a stream of the client's own that does not end.
    all.push(Trespass::new("GET", format!("/events?namespace={name}"), None, Closed));
    for method in ["GET", "DELETE"] {
        all.push(Trespass::new(method, format!("/groups/{name}/{GROUP}"), None, Closed));
    }
    let cancel = json!({"namespace": name, "key_prefix": "n", "metadata": {"m": 1}, "expected_max": 1000});
    all.push(Trespass::new("POST", "/timers/cancel", Some(cancel), Closed));
    for action in ["cancel", "fire", "retry", "reschedule", "pause", "resume", "expire", "delete"] {
        let bulk = |more: Value| {
            let mut body = json!({"action": action, "expected_max": 1000});
            if action == "reschedule" {
                body["set"] = json!({"shift": "+1h"});
            }
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            Some(body)
        };
        let named = json!({"namespace": name});
        all.extend([
            Trespass::new("POST", "/timers/bulk", bulk(json!({"filter": named})), Closed),
            Trespass::new("POST", "/timers/bulk", bulk(json!({"filter": named, "dry_run": true})), Closed),
            Trespass::new("POST", "/timers/bulk", bulk(json!({"filter": {"destination": destination}})), OwnOnly),
            Trespass::new("POST", "/timers/bulk", bulk(json!({"filter": {}, "dry_run": true})), OwnOnly),
        ]);
    }
    let mut stolen = victim.timer("native");
    stolen["on_conflict"] = json!("replace");
    // Refused one by one.
    all.push(Trespass::new("POST", "/timers/batch", Some(json!({"timers": [stolen]})), OwnOnly));
    let wanted = json!({"name": "mine", "namespaces": [name], "rights": "read"});
    all.extend([
        Trespass::new("GET", "/cluster", None, Administrator),
        Trespass::new("GET", "/keys", None, Administrator),
        Trespass::new("POST", "/keys", Some(wanted), Administrator),
        Trespass::new("DELETE", "/keys/01890a5d-ac96-774b-bcce-b302099a8057", None, Administrator),
    ]);
    all
}

pub async fn try_all(intruder: &Tenant, victim: &Tenant, trespasses: &[Trespass]) {
    for trespass in trespasses {
        trespass.commit(intruder, victim).await;
    }
}

/// Fails when the service has an operation that is neither tried here nor named as one that reaches no timer.
pub async fn assert_all_operations_are_tried(client: &Client, trespasses: &[Trespass]) {
    let document = client.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<(String, &str)> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().expect("operations").keys().map(move |method| (method.to_uppercase(), path.as_str()))
        })
        .collect();
    let template_of = |trespass: &Trespass| {
        let path = trespass.path.split('?').next().unwrap_or_default();
        let fits = |template: &&String| {
            let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            let fit = |(part, segment): (&&str, &&str)| part == segment || part.starts_with('{');
            template.len() == path.len() && template.iter().zip(&path).all(fit)
        };
        paths.get_key_value(path).map(|(exact, _)| exact).or_else(|| paths.keys().find(fits)).map_or("", String::as_str)
    };
    let mut known: BTreeSet<(String, &str)> = NO_TIMER.into_iter().map(|(method, path)| (method.to_owned(), path)).collect();
    known.extend(trespasses.iter().map(|trespass| (trespass.method.to_owned(), template_of(trespass))));
    assert_eq!(known, described, "what is tried here, and what the OpenAPI document has");
}
