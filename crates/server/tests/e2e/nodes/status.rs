//! `timer status` and `GET /cluster` say the same.

use serde_json::Value;

use crate::rig::{API_KEY, Nodes, SHARDS, Service, beside_others, timer};

fn said(service: &Service, arguments: &[&str]) -> String {
    let mut command = timer(&std::env::temp_dir());
    command.arg("status").args(arguments).env("API_KEY", API_KEY).env("PORT", service.port().to_string());
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_shows_nodes_and_shards_as_the_service_tells_them() {
    let _machine = beside_others().await;
    let mut nodes = Nodes::start(2).await;
    nodes.services[1].kill();
    let client = nodes.services[0].client();
    crate::rig::wait_until_shared(&client, 1).await;

    let told = client.get("/cluster").await.json()["data"].clone();
    let printed: Value = serde_json::from_str(&said(&nodes.services[0], &["--json"])).expect("JSON");
    assert_eq!(printed["shards"], told["shards"]);
    let text = said(&nodes.services[0], &[]);
    assert!(text.contains(&format!("{SHARDS} of {SHARDS} shards are held")), "{text}");
    assert!(text.contains("nothing is late"), "{text}");
    for (name, state) in [("node-0", "alive"), ("node-1", "dead")] {
        let node = told["nodes"].as_array().expect("nodes").iter().find(|node| node["name"] == name).expect("each node");
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name} in\n{text}"));
        for part in [node["id"].as_str().expect("an id"), state, &node["shards"].to_string()] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
    nodes.services[0].stop().await;
}
