//! A tenant whose receivers hang, however many they are, delays no other tenant.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, TcpListener},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    lateness::Lateness,
    rig::{Backend, Client, Receiver, Service, beside_others, callback_to, eventually, for_each_store, instant, now, tolerated},
};

/// Permits of the service, of which one tenant may have three quarters.
const PERMITS: usize = 64;
const SHARE: u64 = 48;
/// Receivers of one tenant, each at an address of its own.
const HANGING: u8 = 150;
const OTHERS: usize = 50;
const OTHERS_BETWEEN_MICROS: i64 = 20_000;
const LATENESS_MILLIS_MAX: f64 = 500.0;
const SOON: Duration = Duration::from_secs(10);

for_each_store!(a_tenant_whose_receivers_all_hang_delays_no_other_and_health_tells_of_it);

async fn a_tenant_whose_receivers_all_hang_delays_no_other_and_health_tells_of_it(backend: Backend) {
    let _machine = beside_others().await;
    let permits = PERMITS.to_string();
    let service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("IN_FLIGHT_MAX", &permits)]).await;
    let (greedy, other) = (service.client().tenant("greedy").await, service.client().tenant("other").await);

    // The kernel takes the connection and the request; no answer ever comes. Calls that failed are tried again.
    let hanging: Vec<_> =
        (1..=HANGING).map(|host| TcpListener::bind((Ipv4Addr::new(127, 0, 1, host), 0)).expect("a port of its own")).collect();
    let retries = json!({"max_retries": 20, "initial_interval": "1s"});
    let register = async |listener: &TcpListener| {
        let url = format!("http://{}/", listener.local_addr().expect("its address"));
        let callback = json!({"type": "http", "url": url, "timeout": "3s"});
        for _ in 0..2 {
            let timer = json!({"delay": "1ms", "namespace": "greedy", "callback": callback, "retry_policy": retries});
            greedy.create(&timer).await;
        }
    };
    stream::iter(&hanging).for_each_concurrent(8, register).await;
    let told = eventually("the greedy tenant has its share", SOON, async || {
        let told = permits_told(&service.client()).await;
        (told["in_flight"].as_u64() >= Some(SHARE)).then_some(told)
    })
    .await;
    assert_eq!(told, json!({"in_flight": SHARE, "max": PERMITS, "exhausted": true}), "no more than its share");
    let metrics = service.client().send("GET", "/metrics", None).await.text;
    assert!(metrics.contains("\ntimer_permits_exhausted 1\n"), "{metrics}");

    let receiver = Receiver::start();
    let first = now() + 300_000;
    let register = async |n: usize| {
        let at = first + OTHERS_BETWEEN_MICROS * n as i64;
        let callback = callback_to(&receiver.url("/"), &json!(n));
        (other.create(&json!({"execute_at": instant(at), "namespace": "other", "callback": callback})).await, at)
    };
    let due: HashMap<String, i64> = stream::iter(0..OTHERS).map(register).buffer_unordered(8).collect().await;
    let calls = receiver.wait_for(OTHERS, SOON).await;
    let lateness = Lateness::of(calls.iter().map(|call| call.arrived - due[call.timer_id()]));
    println!("{}: beside a tenant with {HANGING} receivers that hang: {lateness}", backend.name());
    assert!(calls.len() == OTHERS && lateness.max() < tolerated(LATENESS_MILLIS_MAX), "{lateness}");
    assert!(permits_told(&service.client()).await["in_flight"].as_u64() <= Some(SHARE), "retries get no more either");
    // Not stopped in order: that would wait for the calls that hang.
}

async fn permits_told(client: &Client) -> Value {
    let health = client.send("GET", "/healthz", None).await;
    assert_eq!(health.status, 200, "{}", health.text);
    health.json()["data"]["permits"].clone()
}
