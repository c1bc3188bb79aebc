use serde_json::{Value, json};

use crate::{
    RateLimit,
    rig::{KEY, Rig},
};

fn timer(namespace: &str) -> String {
    json!({"delay": "1h", "namespace": namespace, "key": "k", "callback": {"type": "http", "url": "http://a/"}}).to_string()
}

#[tokio::test]
async fn a_key_is_shown_once_and_opens_what_it_was_issued_for() {
    let rig = Rig::new();
    let body = r#"{"name":"billing service","namespaces":["b","a","b"],"rights":"write"}"#;
    let reply = rig.call("POST", "/keys", body).await;
    assert_eq!((reply.status.as_u16(), reply.message()), (201, "key created successfully".to_owned()));
    let key = reply.data("key").as_str().unwrap().to_owned();
    let id = reply.data("id").as_str().unwrap().to_owned();
    let mut shown = reply.json()["data"].clone();
    shown.as_object_mut().unwrap().remove("key");
    let expected = json!({"id": id, "name": "billing service", "namespaces": ["b", "a"], "rights": "write",
        "created_at": "2030-01-01T00:00:00Z", "last_used_at": null, "revoked_at": null});
    assert_eq!(shown, expected);
    let listed = rig.get("/keys").await;
    assert_eq!(listed.data("keys"), json!([expected]));
    assert!(!listed.text.contains(&key[40..]));
    assert_eq!(rig.call_with(&key, "POST", "/timers", &timer("a")).await.status, 201);

    for _ in 0..2 {
        let reply = rig.call("DELETE", &format!("/keys/{id}"), "").await;
        assert_eq!(reply.text, r#"{"code":0,"message":"key revoked successfully","data":null}"#);
        assert_eq!(rig.call_with(&key, "GET", "/timers?namespace=a", "").await.refused(401, 4), "unauthorized");
    }
    assert_eq!(rig.get("/keys").await.data("keys")[0]["revoked_at"], "2030-01-01T00:00:00Z");
    let unknown = rig.call("DELETE", "/keys/01890a5d-ac96-774b-bcce-b302099a8057", "").await;
    assert_eq!(unknown.refused(404, 3), "key not found");
    assert_eq!(rig.call("DELETE", "/keys/x", "").await.refused(400, 2), "id must be a UUID");
}

#[tokio::test]
async fn what_a_key_is_to_open_must_be_said() {
    let rig = Rig::new();
    for (body, message) in [
        ("{}", "name is required"),
        (r#"{"name":"","namespaces":null,"rights":"read"}"#, "name must have 1 to 100 printable characters"),
        (r#"{"name":"k","namespaces":null}"#, "rights is required"),
        (r#"{"name":"k","namespaces":null,"rights":"admin"}"#, "rights must be read or write"),
        (r#"{"name":"k","rights":"read"}"#, "namespaces is required: name them, or say null for all of them"),
        (r#"{"name":"k","rights":"read","namespaces":[]}"#, "namespaces must have 1 to 100 elements"),
        (r#"{"name":"k","rights":"read","namespaces":"a"}"#, "namespaces must be an array"),
        (r#"{"name":"k","rights":"read","namespaces":[1]}"#, "namespaces must be strings"),
        (r#"{"name":"k","rights":"read","namespace":"a"}"#, "'namespace' is not a known field"),
    ] {
        let reply = rig.call("POST", "/keys", body).await;
        assert!(reply.refused(400, 2).starts_with(message), "{body}: {}", reply.message());
    }
    let nameless = rig.call("POST", "/keys", r#"{"name":"k","rights":"read","namespaces":[""]}"#).await;
    assert!(nameless.refused(400, 2).starts_with("namespaces must"), "{}", nameless.text);
    assert_eq!(rig.get("/keys").await.data("keys"), json!([]));
}

#[tokio::test]
async fn tenants_do_not_meet_in_any_call_of_either_dialect() {
    let rig = Rig::new();
    let (a, b) = (rig.issued(r#"["a"]"#, "write").await, rig.issued(r#"["b"]"#, "write").await);
    let created = rig.call_with(&a, "POST", "/timers", &timer("a")).await;
    let id = created.data("id").as_str().unwrap().to_owned();
    assert_eq!(rig.call_with(&b, "POST", "/timers", &timer("b")).await.status, 201);
    let before = rig.call_with(&a, "GET", &format!("/timers/{id}"), "").await;

    let v1 = r#"{"namespace":"a","timerId":"k"}"#;
    for (method, path, body) in [
        ("GET", format!("/timers/{id}"), ""),
        ("PUT", format!("/timers/{id}"), r#"{"delay":"2h"}"#),
        ("PUT", format!("/timers/{id}"), "{}"),
        ("DELETE", format!("/timers/{id}"), ""),
        ("POST", format!("/timers/{id}/fire"), ""),
        ("POST", format!("/timers/{id}/retry"), ""),
        ("GET", format!("/timers/{id}/attempts"), ""),
        ("GET", "/api/v1/timers/a/k".to_owned(), ""),
        ("PUT", "/api/v1/timers/a/k".to_owned(), r#"{"executeAt":"2031-01-01T00:00:00Z"}"#),
        ("DELETE", "/api/v1/timers/a/k".to_owned(), ""),
        ("POST", "/api/v1/timers/get".to_owned(), v1),
        ("POST", "/api/v1/timers/update".to_owned(), v1),
        ("POST", "/api/v1/timers/delete".to_owned(), v1),
    ] {
        let reply = rig.call_with(&b, method, &path, body).await;
        if path.starts_with("/api/v1") {
            reply.refused_v1(404, "TIMER_NOT_FOUND");
        } else {
            assert_eq!(reply.refused(404, 3), "timer not found", "{method} {path}");
        }
    }
    let closed = "namespace must be one that this key opens";
    assert_eq!(rig.call_with(&b, "POST", "/timers", &timer("a")).await.refused(403, 4), closed);
    assert_eq!(rig.call_with(&b, "GET", "/timers?namespace=a", "").await.refused(403, 4), closed);
    let cancel = r#"{"namespace":"a","expected_max":9}"#;
    assert_eq!(rig.call_with(&b, "POST", "/timers/cancel", cancel).await.refused(403, 4), closed);
    let v1 = r#"{"id":"k","groupId":"a","executeAt":"2031-01-01T00:00:00Z","callbackUrl":"http://a/"}"#;
    for path in ["/api/v1/timers", "/api/v1/timers/create"] {
        assert_eq!(rig.call_with(&b, "POST", path, v1).await.refused_v1(403, "FORBIDDEN")["message"], closed);
    }
    let batch = format!(r#"{{"timers":[{},{}]}}"#, timer("a"), timer("b"));
    let results = rig.call_with(&b, "POST", "/timers/batch", &batch).await.data("results");
    assert_eq!(
        (&results[0]["status"], &results[0]["message"], &results[1]["status"]),
        (&json!(403), &json!(closed), &json!(200))
    );

    let listed = rig.call_with(&b, "GET", "/timers", "").await;
    assert_eq!((listed.data("total"), &listed.data("timers")[0]["namespace"]), (json!(1), &json!("b")));
    let canceled = rig.call_with(&b, "POST", "/timers/cancel", r#"{"key_prefix":"k","expected_max":9}"#).await;
    assert_eq!(canceled.data("canceled"), 1);
    assert_eq!(rig.call_with(&a, "GET", &format!("/timers/{id}"), "").await.text, before.text);
}

#[tokio::test]
async fn a_key_that_may_only_read_changes_nothing() {
    let rig = Rig::new();
    let reader = rig.issued(r#"["a"]"#, "read").await;
    let id = rig.created(&timer("a")).await;
    for path in [format!("/timers/{id}"), format!("/timers/{id}/attempts"), "/timers".to_owned(), "/api/v1/timers/a/k".to_owned()]
    {
        assert_eq!(rig.call_with(&reader, "GET", &path, "").await.status, 200, "{path}");
    }
    for (method, path, body) in [
        ("POST", "/timers".to_owned(), timer("a")),
        ("PUT", format!("/timers/{id}"), "{}".to_owned()),
        ("DELETE", format!("/timers/{id}"), String::new()),
        ("POST", format!("/timers/{id}/fire"), String::new()),
        ("POST", format!("/timers/{id}/retry"), String::new()),
        ("POST", "/timers/cancel".to_owned(), r#"{"namespace":"a","expected_max":9}"#.to_owned()),
    ] {
        let reply = rig.call_with(&reader, method, &path, &body).await;
        assert_eq!(reply.refused(403, 4), "this key may only read", "{method} {path}");
    }
    assert_eq!(
        rig.call_with(&reader, "DELETE", "/api/v1/timers/a/k", "").await.refused_v1(403, "FORBIDDEN")["details"],
        json!({})
    );
    assert_eq!(rig.get(&format!("/timers/{id}")).await.data("status"), "pending");
}

#[tokio::test]
async fn keys_are_for_the_administrator() {
    let rig = Rig::new();
    let all = rig.issued("null", "write").await;
    assert_eq!(rig.call_with(&all, "POST", "/timers", &timer("a")).await.status, 201);
    for (method, path, body) in [
        ("GET", "/keys", ""),
        ("POST", "/keys", r#"{"name":"k","namespaces":null,"rights":"write"}"#),
        ("DELETE", "/keys/01890a5d-ac96-774b-bcce-b302099a8057", ""),
    ] {
        let reply = rig.call_with(&all, method, path, body).await;
        assert_eq!(reply.refused(403, 4), "this takes the administrator's key", "{method} {path}");
    }
}

#[tokio::test]
async fn each_key_has_a_limit_of_its_own() {
    let rig = Rig::rated(RateLimit { per_second: 10, burst: 3 });
    let (a, b) = (rig.issued(r#"["a"]"#, "write").await, rig.issued(r#"["b"]"#, "write").await);
    for _ in 0..3 {
        assert_eq!(rig.call_with(&a, "GET", "/timers", "").await.status, 200);
    }
    let refused = rig.call_with(&a, "GET", "/timers", "").await;
    assert_eq!(refused.refused(429, 5), "too many requests with this key: see the Retry-After header");
    assert_eq!(refused.headers["retry-after"], "1");
    let refused = rig.call_with(&a, "GET", "/api/v1/timers/a/k", "").await;
    assert_eq!(
        (refused.refused_v1(429, "TOO_MANY_REQUESTS")["details"].clone(), &refused.headers["retry-after"]),
        (json!({}), &"1".parse().unwrap())
    );
    assert_eq!(rig.call_with(&b, "GET", "/timers", "").await.status, 200);
    assert_eq!(rig.call_with("wrong", "GET", "/timers", "").await.status, 401);
    assert_eq!(rig.get("/ping").await.status, 200);

    rig.clock.advance(domain::Span::from_secs(1));
    let many = vec![serde_json::from_str::<Value>(&timer("a")).unwrap(); 100];
    let batch = json!({"timers": many}).to_string();
    assert_eq!(rig.call_with(&a, "POST", "/timers/batch", &batch).await.status, 200);
    let refused = rig.call_with(&a, "GET", "/timers", "").await;
    assert_eq!((refused.status.as_u16(), &refused.headers["retry-after"]), (429, &"10".parse().unwrap()));
    assert_eq!(rig.call_with(KEY, "GET", "/timers", "").await.status, 200);
}
