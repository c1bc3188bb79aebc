//! Receivers that send without end cost no node its leases.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::{
    floods::flood,
    lateness::Lateness,
    rig::{Client, Nodes, Receiver, callback_to, heavy, instant, now, tolerated},
};

const NODES: usize = 2;
const FLOODS: usize = 128;
/// Each call is made so many times, a second apart: all the time while the innocent timers are due.
const FLOOD_RETRIES: usize = 3;
const OTHERS: usize = 150;
const OTHERS_BETWEEN_MICROS: i64 = 20_000;
const LATENESS_MILLIS_MAX: f64 = 2_000.0;

/// Registers timers in one batch; the ids in the same order.
async fn register(client: &Client, timers: Vec<Value>) -> Vec<String> {
    let answer = client.send("POST", "/timers/batch", Some(&json!({"timers": timers}))).await.json();
    let results = answer["data"]["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    results.iter().map(|result| result["timer"]["id"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_interim_responses_costs_no_lease_and_no_timer_a_second_call() {
    let _machine = heavy().await;
    let nodes = Nodes::start(NODES).await;
    let clients = nodes.clients();
    let (attacker, other) = (clients[0].tenant("attacker").await, clients[1].tenant("other").await);
    let (flood, receiver) = (flood(), Receiver::start());
    let before = clients[0].cluster().await;

    let first = now() + 2_000_000;
    let flooded = json!({
        "namespace": "attacker", "execute_at": instant(first), "callback": callback_to(&format!("http://{flood}/"), &json!(null)),
        "retry_policy": {"max_retries": FLOOD_RETRIES, "initial_interval": "1s", "max_interval": "1s"},
    });
    let flooded = register(&attacker, vec![flooded; FLOODS]).await;
    let due_at = |n: usize| first + OTHERS_BETWEEN_MICROS * n as i64;
    let innocent = |n: usize| {
        let callback = callback_to(&receiver.url("/"), &json!(n));
        json!({"namespace": "other", "execute_at": instant(due_at(n)), "callback": callback})
    };
    let ids = register(&other, (0..OTHERS).map(innocent).collect()).await;
    let due: HashMap<String, i64> = ids.into_iter().zip((0..OTHERS).map(due_at)).collect();
    receiver.wait_for(OTHERS, Duration::from_secs(30)).await;
    for id in &flooded {
        let failed = attacker.wait_for_status(id, "failed").await;
        assert!(failed["last_error"].as_str().is_some_and(|error| error.starts_with("sent more than 8 interim")), "{failed}");
    }

    let mut calls: HashMap<String, i64> = HashMap::new();
    for call in receiver.calls() {
        let late = call.arrived - due[call.timer_id()];
        assert_eq!(calls.insert(call.timer_id().to_owned(), late), None, "called twice: {call:?}");
    }
    let lateness = Lateness::of(calls.into_values());
    println!("PostgreSQL, {NODES} nodes, beside {FLOODS} receivers that send interim responses without end: {lateness}");
    assert!(lateness.max() < tolerated(LATENESS_MILLIS_MAX), "{lateness}");
    for (client, metric) in
        clients.iter().flat_map(|client| ["timer_leases_lost_total", "timer_shards_lost_total"].map(|metric| (client, metric)))
    {
        assert_eq!(client.metric(metric).await, Some(0.0), "{metric}");
    }
    assert_eq!(clients[0].cluster().await.epochs, before.epochs, "no shard moved");
    nodes.stop().await;
}
