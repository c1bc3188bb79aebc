use std::collections::BTreeSet;

use domain::names_of;

use super::*;
use crate::{
    filter,
    rig::{Rig, request},
};

fn properties(document: &Value, schema: &str) -> BTreeSet<String> {
    document["components"]["schemas"][schema]["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_document_is_openapi_3_1_and_every_reference_leads_somewhere() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(&format!("/{reference}")).is_some(), "{reference}");
    }
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
            assert!(operation["summary"].is_string() && operation["description"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].is_string(), "{method} {path} {status}");
                assert_eq!(response["content"].is_object(), status != "204", "{method} {path} {status}");
            }
            let is_open = auth::OPEN_PATHS.contains(&path.as_str());
            assert_eq!(operation["security"].is_array(), !is_open, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_described_route_is_there_and_no_other() {
    let rig = Rig::new();
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let routes = BTreeSet::from([
        "/timers",
        "/timers.csv",
        "/timers.json",
        "/timers.ndjson",
        "/timers/{id}",
        "/timers/{id}/fire",
        "/timers/{id}/retry",
        "/timers/{id}/ping",
        "/timers/{id}/attempts",
        "/timers/batch",
        "/timers/cancel",
        "/groups/{namespace}/{group}",
        "/events",
        "/namespaces/{namespace}/timers/{key}",
        "/namespaces/{namespace}/timers/{key}/fire",
        "/namespaces/{namespace}/timers/{key}/retry",
        "/namespaces/{namespace}/timers/{key}/ping",
        "/namespaces/{namespace}/timers/{key}/pause",
        "/namespaces/{namespace}/timers/{key}/resume",
        "/namespaces/{namespace}/timers/{key}/attempts",
        "/timers/{id}/pause",
        "/timers/{id}/resume",
        "/timers/bulk",
        "/operations",
        "/operations/{id}",
        "/timers/count",
        "/keys",
        "/keys/{id}",
        "/stats/due",
        "/stats/fired",
        "/destinations",
        "/namespaces",
        "/cluster",
        "/whoami",
        "/api/v1/timers",
        "/api/v1/timers/{groupId}/{timerId}",
        "/api/v1/timers/create",
        "/api/v1/timers/get",
        "/api/v1/timers/update",
        "/api/v1/timers/delete",
        "/healthz",
        "/ping",
        "/metrics",
        "/openapi.json",
        "/docs",
    ]);
    assert_eq!(described, routes);
    for (path, item) in paths {
        // A stream that is refused is an answer that ends.
        let real = path.replace("{id}", "01890a5d-ac96-774b-bcce-b302099a8057").replace("/events", "/events?types=none");
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let reply = rig.call(method, &real, "{}").await;
            let is_described = item.get(method.to_lowercase()).is_some();
            assert_eq!(reply.status != 405, is_described, "{method} {path}");
            if is_described {
                let status = reply.status.as_u16().to_string();
                assert!(item[method.to_lowercase()]["responses"].get(&status).is_some(), "{method} {path} {status}");
            }
        }
    }
}

#[test]
fn what_is_described_is_what_is_read() {
    let document = document();
    let names = |names: &[&str]| names.iter().copied().map(str::to_owned).collect::<BTreeSet<_>>();
    let mut long = properties(&document, "CreateTimerAt");
    long.extend(properties(&document, "CreateTimerAfter"));
    assert_eq!(long, names(names_of::<create::LongForm<'_>>()));
    assert_eq!(properties(&document, "CreateCountdown"), names(names_of::<create::ShortForm<'_>>()));
    assert_eq!(properties(&document, "UpdateTimer"), names(names_of::<update::UpdateTimer<'_>>()));
    assert_eq!(properties(&document, "CreateKey"), names(names_of::<keys::create::CreateKey<'_>>()));
    assert_eq!(properties(&document, "CreateTimers"), names(names_of::<batch::CreateTimers<'_>>()));
    assert_eq!(properties(&document, "CancelTimers"), names(names_of::<cancel_matching::CancelTimers<'_>>()));
    assert_eq!(properties(&document, "BulkChange"), names(names_of::<bulk::BulkChange<'_>>()));
    assert_eq!(properties(&document, "BulkFilter"), names(names_of::<filter::BulkFilter<'_>>()));
    for closed in [
        "CreateTimerAt",
        "CreateTimerAfter",
        "CreateCountdown",
        "CreateTimers",
        "CancelTimers",
        "CreateKey",
        "UpdateTimer",
        "BulkChange",
        "BulkFilter",
    ] {
        assert_eq!(document["components"]["schemas"][closed]["additionalProperties"], false, "{closed}");
    }
}

#[test]
fn what_must_not_be_given_together_is_described() {
    let document = document();
    let refused = |form: &str| {
        let not = &document["components"]["schemas"][form]["not"];
        not["anyOf"].as_array().cloned().unwrap_or_else(|| vec![not.clone()])
    };
    for (form, both) in [
        ("CreateTimerAt", ["id", "key"]),
        ("CreateTimerAt", ["expires_at", "expires_after"]),
        ("CreateTimerAfter", ["id", "key"]),
        ("CreateTimerAfter", ["expires_at", "expires_after"]),
        ("UpdateTimer", ["execute_at", "delay"]),
        ("UpdateTimer", ["expires_at", "expires_after"]),
        ("V1CreateTimer", ["namespace", "groupId"]),
        ("V1CreateTimer", ["callbackTimeout", "callbackTimeoutSeconds"]),
        ("V1TimerSelection", ["namespace", "groupId"]),
        ("V1UpdateTimer", ["callbackTimeout", "callbackTimeoutSeconds"]),
    ] {
        assert!(refused(form).contains(&json!({"required": both})), "{form} {both:?}");
    }
}

#[test]
fn what_is_described_has_the_limits_that_are_kept() {
    use domain::limits;
    let document = document();
    let schemas = &document["components"]["schemas"];
    let limit = |pointer: &str| schemas.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
    for (pointer, kept) in [
        ("/CreateTimerAt/properties/namespace/maxLength", limits::NAMESPACE_CHARS_MAX as f64),
        ("/CreateTimerAt/properties/key/maxLength", limits::KEY_CHARS_MAX as f64),
        ("/CreateTimerAt/properties/correlation_id/maxLength", limits::CORRELATION_ID_CHARS_MAX as f64),
        ("/HttpCallback/properties/url/maxLength", limits::URL_CHARS_MAX as f64),
        ("/NatsCallback/properties/topic/maxLength", limits::SUBJECT_BYTES_MAX as f64),
        ("/Headers/maxProperties", limits::HEADERS_MAX as f64),
        ("/RetryPolicy/properties/max_retries/maximum", f64::from(limits::RETRIES_MAX)),
        ("/RetryPolicy/properties/backoff_multiplier/maximum", limits::BACKOFF_MULTIPLIER_MAX),
        ("/TimerPage/properties/limit/maximum", f64::from(crate::PAGE_TIMERS_MAX)),
        ("/CreateTimers/properties/timers/maxItems", limits::CREATED_AT_ONCE_MAX as f64),
        ("/BatchResults/properties/results/maxItems", limits::CREATED_AT_ONCE_MAX as f64),
        ("/CancelTimers/properties/expected_max/maximum", limits::CANCELED_AT_ONCE_MAX as f64),
        ("/CancelTimers/properties/key_prefix/maxLength", limits::KEY_CHARS_MAX as f64),
        ("/CreateKey/properties/name/maxLength", limits::KEY_NAME_CHARS_MAX as f64),
        ("/CreateKey/properties/namespaces/maxItems", limits::KEY_NAMESPACES_MAX as f64),
        ("/Attempts/properties/attempts/maxItems", limits::ATTEMPTS_KEPT as f64),
    ] {
        assert_eq!(limit(pointer), kept, "{pointer}");
    }
}

#[tokio::test]
async fn the_document_and_the_page_are_open_without_a_key() {
    let rig = Rig::new();
    for (path, content_type) in [("/openapi.json", "application/json"), ("/docs", "text/html; charset=utf-8")] {
        let mut open = request("GET", path, "");
        open.headers_mut().clear();
        let reply = rig.send(open).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], content_type);
    }
    let page = rig.get("/docs").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(rig.get("/openapi.json").await.json(), document());
}

#[tokio::test]
async fn the_examples_of_bodies_are_taken() {
    let document = document();
    let mut taken = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let example = &item["post"]["requestBody"]["content"]["application/json"]["example"];
        if example.is_object() {
            let reply = Rig::new().call("POST", path, &example.to_string()).await;
            assert!(reply.status.is_success(), "{path}: {}", reply.text);
            let results = reply.data("results");
            assert!(results.as_array().into_iter().flatten().all(|result| result["status"] == 201), "{results}");
            taken.push(path.as_str());
        }
    }
    assert_eq!(taken, ["/timers/batch", "/timers/cancel", "/timers/bulk", "/keys"]);
}

/// Beside another type `null` is understood; alone it is a type that hardly a generator of clients knows.
#[test]
fn no_schema_is_of_type_null_alone() {
    fn look(schema: &Value, path: &str) {
        assert!(schema["type"] != "null" || path.contains("/oneOf/"), "{path}");
        match schema {
            Value::Object(members) => members.iter().for_each(|(name, member)| look(member, &format!("{path}/{name}"))),
            Value::Array(elements) => elements.iter().enumerate().for_each(|(n, element)| look(element, &format!("{path}/{n}"))),
            _ => {}
        }
    }
    look(&document(), "");
}

/// What generators of clients make names of: a client cannot be generated where one is missing, or two are alike in another writing.
#[test]
fn every_operation_and_parameter_has_a_name_to_generate_from() {
    let document = document();
    assert_eq!(document["servers"], json!([{"url": "/"}]));
    let names = document["components"]["schemas"].as_object().unwrap().keys();
    let folded: BTreeSet<String> = names.clone().map(|name| name.replace('_', "").to_lowercase()).collect();
    assert_eq!(folded.len(), names.len(), "no two schemas differ in case or underscores alone");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()) && ids.insert(id.to_lowercase()), "{method} {path} {id}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let is_in_path = path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap()));
                assert_eq!(parameter["in"] == "path", is_in_path, "{method} {path} {parameter}");
                assert!(parameter["schema"].is_object(), "{method} {path} {parameter}");
            }
        }
    }
}
