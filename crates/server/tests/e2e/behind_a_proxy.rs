//! `BASE_PATH`, compressed answers and `/whoami`: what a console and a reverse proxy need of the service.

use std::{io::Read, time::Duration};

use serde_json::json;

use crate::rig::{API_KEY, Backend, Client, Service, beside_others, callback_to, eventually, timer};

const BASE_PATH: &str = "/tools/timers-api";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_under_the_base_path_and_the_command_line_finds_it() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::begin(&backend, &[("BASE_PATH", BASE_PATH)]);
    let (outside, client) = (service.client(), Client::under(service.port(), BASE_PATH));
    eventually("the service is healthy", Duration::from_secs(30), async || {
        client.try_send("GET", "/healthz", None).await.is_ok_and(|answer| answer.status == 200).then_some(())
    })
    .await;
    let id = client.create(&json!({"delay": "1h", "callback": callback_to("http://127.0.0.1:9/", &json!(1))})).await;
    assert_eq!(client.get(&format!("/timers/{id}")).await.status, 200);
    assert_eq!(outside.get(&format!("/timers/{id}")).await.status, 404);
    assert_eq!(outside.get("/healthz").await.status, 404);
    assert_eq!(client.get("/openapi.json").await.json()["servers"], json!([{"url": BASE_PATH}]));
    assert_eq!(client.get("/docs").await.status, 200);
    assert_eq!(client.get("/api/v1/timers/a/b").await.json()["error"], "TIMER_NOT_FOUND");
    assert!(client.get("/metrics").await.text.contains("route=\"/timers/{id}\""));
    let port = service.port().to_string();
    for (arguments, base_path, is_well) in
        [(&["healthcheck"][..], BASE_PATH, true), (&["healthcheck"], "/", false), (&["status"], BASE_PATH, true)]
    {
        let mut command = timer(backend.home());
        command.args(arguments).env("PORT", &port).env("API_KEY", API_KEY).env("BASE_PATH", base_path);
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.success(), is_well, "{arguments:?} {base_path} {output:?}");
    }
    service.stop().await;

    let output = timer(backend.home()).args(["serve", "--base-path", "timers/"]).env("API_KEY", API_KEY).output();
    let output = output.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("BASE_PATH must begin with /"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_answers_are_compressed_for_clients_that_take_them_so() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    for _ in 0..20 {
        client.create(&json!({"delay": "1h", "callback": callback_to("http://127.0.0.1:9/", &json!(1))})).await;
    }
    for (path, is_large) in [("/timers", true), ("/docs", true), ("/openapi.json", true), ("/metrics", true), ("/ping", false)] {
        let request = || client.request("GET", path).header("x-api-key", client.key());
        let plain = client.send_for_bytes(request()).await;
        assert!(!plain.0.contains_key("content-encoding"), "{path}");
        let (headers, bytes) = client.send_for_bytes(request().header("accept-encoding", "br, gzip")).await;
        assert_eq!(headers.get("content-encoding").is_some_and(|coding| coding == "gzip"), is_large, "{path}");
        if is_large {
            assert_eq!(headers["vary"], "accept-encoding");
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut unpacked).expect("gzip");
            // Metrics differ from one moment to the next.
            assert!(unpacked == plain.1 || path == "/metrics", "{path}");
            assert!(bytes.len() * 2 < unpacked.len(), "{path}: {} of {}", bytes.len(), unpacked.len());
        }
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_told_what_it_opens() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let own = client.get("/whoami").await.json()["data"].clone();
    assert_eq!((&own["administrator"], &own["rights"], &own["namespaces"]), (&json!(true), &json!("write"), &json!(null)));
    let tenant = client.tenant("billing").await;
    let told = tenant.get("/whoami").await;
    let shown = told.json()["data"].clone();
    assert_eq!((&shown["administrator"], &shown["name"], &shown["rights"]), (&json!(false), &json!("billing"), &json!("write")));
    assert_eq!(shown["namespaces"], json!(["billing"]));
    assert!(!told.text.contains(tenant.key()));
    assert_eq!(client.with_key("wrong").get("/whoami").await.status, 401);
    service.stop().await;
}
