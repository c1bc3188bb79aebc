//! Receivers that send without end delay no other tenant.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::{
    lateness::Lateness,
    rig::{Backend, Receiver, Service, callback_to, for_each_store, heavy, instant, now, tolerated},
};

const FLOODS: usize = 64;
/// For each call: far beyond every limit, and an end where there is none.
const FLOOD_BYTES_MAX: usize = 64 * 1024 * 1024;
const OTHERS: usize = 100;
const OTHERS_BETWEEN_MICROS: i64 = 20_000;
const LATENESS_MILLIS_MAX: f64 = 2_000.0;

for_each_store!(a_flood_of_interim_responses_delays_no_other_tenant);

async fn a_flood_of_interim_responses_delays_no_other_tenant(backend: Backend) {
    let _machine = heavy().await;
    let flood = flood();
    let receiver = Receiver::start();
    let service = Service::start(&backend).await;
    let (attacker, other) = (service.client().tenant("attacker").await, service.client().tenant("other").await);

    let first = now() + 2_000_000;
    let timer = json!({
        "namespace": "attacker",
        "execute_at": instant(first),
        "callback": callback_to(&format!("http://{flood}/"), &json!(null)),
    });
    let flooded: Vec<String> = stream::iter(0..FLOODS).map(|_| attacker.create(&timer)).buffer_unordered(8).collect().await;
    let register = async |n: usize| {
        let at = first + OTHERS_BETWEEN_MICROS * n as i64;
        let callback = callback_to(&receiver.url("/"), &json!(n));
        (other.create(&json!({"namespace": "other", "execute_at": instant(at), "callback": callback})).await, at)
    };
    let due: HashMap<String, i64> = stream::iter(0..OTHERS).map(register).buffer_unordered(8).collect().await;
    let calls = receiver.wait_for(OTHERS, Duration::from_secs(30)).await;

    let lateness = Lateness::of(calls.iter().map(|call| call.arrived - due[call.timer_id()]));
    println!("{}: beside {FLOODS} receivers that send interim responses without end: {lateness}", backend.name());
    assert!(lateness.max() < tolerated(LATENESS_MILLIS_MAX), "{lateness}");
    for id in flooded {
        let failed = attacker.wait_for_status(&id, "failed").await;
        let error = failed["last_error"].as_str().unwrap_or_default();
        assert!(error.starts_with("sent more than 8 interim responses"), "{failed}");
    }
}

/// A receiver that answers each call with `100 Continue` again and again.
pub fn flood() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || drop(send_without_end(stream)));
        }
    });
    addr
}

fn send_without_end(mut stream: TcpStream) -> std::io::Result<()> {
    // The request, or some of it.
    let _ = stream.read(&mut [0; 4096])?;
    let block = "HTTP/1.1 100 Continue\r\n\r\n".repeat(2_600);
    for _ in 0..FLOOD_BYTES_MAX / block.len() {
        stream.write_all(block.as_bytes())?;
    }
    Ok(())
}
