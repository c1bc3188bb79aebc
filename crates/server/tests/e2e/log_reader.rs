//! The reader of the log goes away: the work goes on.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{Backend, Receiver, Reply, Service, beside_others, callback_to, for_each_store};

const TIMERS: usize = 20;

for_each_store!(without_a_reader_of_its_log_the_service_fires_retries_and_stops);

async fn without_a_reader_of_its_log_the_service_fires_retries_and_stops(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::replying(|call| Reply::Status(if call.header("x-timer-attempt") == "1" { 503 } else { 200 }));
    // Everything that is done is logged, so that every part of the service meets the closed pipe.
    let settings = [("MIN_DELAY", "0s"), ("RUST_LOG", "debug")];
    let (mut service, reader) = Service::start_with_piped_log(&backend, &settings).await;
    drop(reader);

    let client = service.client();
    let policy = json!({"max_retries": 3, "initial_interval": "200ms"});
    let timer = json!({"delay": "1ms", "retry_policy": policy, "callback": callback_to(&receiver.url("/"), &json!(1))});
    let ids = join_all((0..TIMERS).map(async |_| client.create(&timer).await)).await;
    // A request that is refused is logged, too.
    assert_eq!(client.get("/timers/nonsense").await.status, 400);
    for id in &ids {
        let timer = client.wait_for_status(id, "completed").await;
        assert_eq!(timer["attempt"], 2, "{timer}");
    }
    client.wait_until_finished(Duration::from_secs(10)).await;
    assert_eq!(receiver.count(), 2 * TIMERS);
    assert_eq!(client.get("/healthz").await.status, 200);
    service.stop().await;
}
