//! Finding timers: by every condition of the filter, as pages, as a count and as an export, and only one's own.

use serde_json::{Value, json};

use crate::rig::{Backend, Client, Service, beside_others, for_each_store};

for_each_store!(mariadb in soak:
    timers_are_found_by_all_that_is_known_of_them,
    an_export_has_every_timer_once,
    a_bad_filter_is_refused_by_name,
    a_key_finds_counts_and_exports_only_its_own,
);

async fn filled(client: &Client) {
    let timer = |n: usize| {
        json!({
            "delay": format!("{}h", n + 1), "key": format!("order-{n}"), "namespace": if n.is_multiple_of(3) { "acme" } else { "bolt" },
            "callback": {"type": "http", "url": format!("http://r{}.example:8{}/hook", n % 2, n % 2)},
            "metadata": {"customer": {"id": n % 4}, "tags": ["a", "b"]}, "correlation_id": format!("c-{n}"),
            "group": if n < 6 { "g" } else { "G" },
        })
    };
    for n in 0..12 {
        client.create(&timer(n)).await;
    }
}

fn keys(timers: &Value) -> Vec<String> {
    timers.as_array().expect("timers").iter().map(|timer| timer["key"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn found(client: &Client, query: &str) -> Vec<String> {
    let answer = client.get(&format!("/timers?sort=execute_at&order=asc&{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let data = answer.json()["data"].clone();
    assert_eq!((&data["complete"], &data["next_cursor"]), (&json!(true), &Value::Null), "{query}");
    let counted = client.get(&format!("/timers/count?{query}")).await.json()["data"].clone();
    assert_eq!(counted, json!({"total": data["total"], "total_is_estimate": false}), "{query}");
    keys(&data["timers"])
}

async fn timers_are_found_by_all_that_is_known_of_them(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    filled(&client).await;
    let orders = |numbers: &[usize]| numbers.iter().map(|n| format!("order-{n}")).collect::<Vec<_>>();
    for (query, expected) in [
        ("status=pending,failed&namespace=acme", &[0, 3, 6, 9][..]),
        ("namespace=acme,bolt&metadata.customer.id=1", &[1, 5, 9]),
        ("metadata.customer.id=1&metadata.tags.1=b&namespace=acme", &[9]),
        ("metadata.customer.id=1.0", &[]),
        ("key=order-7", &[7]),
        ("key=order-7&namespace=bolt", &[7]),
        ("key=order-7&namespace=acme", &[]),
        ("key_prefix=order-1", &[1, 10, 11]),
        ("correlation_id=c-4", &[4]),
        ("destination=r1.example:81&namespace=acme", &[3, 9]),
        ("destination=r1.example:80", &[]),
        ("error=500", &[]),
        ("group=g", &[0, 1, 2, 3, 4, 5]),
        ("group=G&namespace=acme", &[6, 9]),
        ("group=g&namespace=acme,bolt&status=pending,failed", &[0, 1, 2, 3, 4, 5]),
        ("group=g&status=canceled", &[]),
        ("group=none", &[]),
        ("due_from=2999-01-01T00:00:00Z", &[]),
        ("created_to=2000-01-01T00:00:00Z", &[]),
        ("status=executing", &[]),
    ] {
        assert_eq!(found(&client, query).await, orders(expected), "{query}");
    }
    let canceled = json!({"namespace": "bolt", "metadata": {"tags": ["a", "b"]}, "expected_max": 100});
    assert_eq!(client.send("POST", "/timers/cancel", Some(&canceled)).await.json()["data"]["canceled"], 8);
    assert_eq!(found(&client, "status=canceled,failed").await.len(), 8);
    service.stop().await;
}

async fn an_export_has_every_timer_once(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    // More than two pages.
    for batch in 0..3 {
        let timers: Vec<_> = (0..900)
            .map(|n| json!({"delay": "1h", "key": format!("{batch}-{n}"), "callback": {"type": "http", "url": "http://a.example/"}}))
            .collect();
        let made = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await;
        assert!(made.status < 300, "{}", made.text);
    }
    let csv = client.get("/timers.csv").await;
    assert_eq!((csv.status, csv.headers["content-type"].as_bytes()), (200, &b"text/csv; charset=utf-8; header=present"[..]));
    assert_eq!(csv.text.lines().count(), 2_701);
    let json: Value = serde_json::from_str(&client.get("/timers.json?key_prefix=1-").await.text).expect("JSON");
    let mut exported = keys(&json);
    exported.sort_unstable();
    exported.dedup();
    assert_eq!(exported.len(), 900);
    let ndjson = client.get("/timers.ndjson?status=pending").await.text;
    assert_eq!(ndjson.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 2_700);
    service.stop().await;
}

async fn a_bad_filter_is_refused_by_name(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    filled(&client).await;
    let long = "x".repeat(7_000);
    for path in ["/timers", "/timers/count", "/timers.csv", "/timers.json", "/timers.ndjson"] {
        for (query, message) in [
            ("status=done", "status must be "),
            ("due_from=tomorrow", "due_from must be an RFC 3339"),
            ("metadata.=1", "metadata must be a path"),
            (&format!("metadata.{long}=1"), "metadata must not be a path of more than 1024 bytes"),
            ("namespace=", "namespace must have"),
            ("error=%00", "error must not contain"),
            ("stauts=pending", "'stauts' is not a known parameter"),
        ] {
            let answer = client.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status, 400, "{path}?{query}");
            assert!(answer.message().starts_with(message), "{path}: {}", answer.message());
        }
    }
    let answer = client.get("/timers?offset=9999&limit=2").await;
    assert_eq!((answer.status, answer.message().contains("cursor")), (400, true), "{}", answer.message());
    let pending = client.get("/timers/count?status=pending").await.json()["data"]["total"].clone();
    for (bytes, status, message) in
        [(5_000, 400, "filter.metadata must not be a path of more than 1024 bytes"), (10 << 20, 413, "")]
    {
        let filter = json!({"status": "pending", "metadata": {"x".repeat(bytes): "1"}});
        let cancel = json!({"action": "cancel", "filter": filter, "expected_max": 100});
        let answer = client.send("POST", "/timers/bulk", Some(&cancel)).await;
        assert_eq!(answer.status, status, "a path of {bytes} bytes");
        assert!(answer.message().starts_with(message), "{}", answer.message());
    }
    assert_eq!(client.get("/timers/count?status=pending").await.json()["data"]["total"], pending, "nothing was changed");
    service.stop().await;
}

async fn a_key_finds_counts_and_exports_only_its_own(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let admin = service.client();
    filled(&admin).await;
    let acme = admin.tenant("acme").await;
    assert_eq!(acme.get("/timers/count").await.json()["data"]["total"], 4);
    assert_eq!(acme.get("/timers.csv").await.text.lines().count(), 5);
    assert_eq!(acme.get("/timers/count?namespace=bolt").await.status, 403);
    assert_eq!(acme.get("/timers.json?namespace=acme,bolt").await.status, 403);
    for query in [
        "key=order-1",
        "correlation_id=c-1",
        "destination=r1.example:81&key_prefix=order-1",
        "metadata.customer.id=2&key=order-2",
    ] {
        assert_eq!(found(&acme, query).await, Vec::<String>::new(), "{query}");
    }
    // A cursor is good for keys with the same namespaces.
    let foreign = admin.get("/timers?namespace=bolt&order=asc&limit=1").await.json()["data"]["next_cursor"].clone();
    let cursor = foreign.as_str().expect("a cursor");
    assert_eq!(acme.get(&format!("/timers?order=asc&cursor={cursor}")).await.status, 400);
    service.stop().await;
}
