use broker::announce;
use domain::Timer;
use futures_util::{StreamExt, stream};
use throwaway::Nats;
use tokio::time::Instant;

use crate::rig::{EVENTS, Process, Witness, command};

const COUNT: usize = 50_000;

/// Figures for people: `cargo test -p broker --release --test nats -- --ignored --nocapture throughput`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, not a test"]
async fn throughput_of_commands_and_events() {
    let nats = Nats::start();
    let process = Process::closed(&nats.url());
    // Opened and closed once, so that the streams are there.
    let opener = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    opener.stop().await;
    for from in (0..COUNT).step_by(2000) {
        witness.send_all((from..from + 2000).map(|n| command(&n.to_string()))).await;
    }
    let started = Instant::now();
    process.open();
    process.scheduled(COUNT).await;
    witness.until_settled().await;
    let seconds = started.elapsed().as_secs_f64();
    println!("{COUNT} commands in {seconds:.2} s: {:.0} commands/s", COUNT as f64 / seconds);

    let timer = process.timer("0").await.unwrap();
    let started = Instant::now();
    stream::iter(0..COUNT as i64)
        .for_each_concurrent(512, |n| {
            let micros = timer.execute_at.as_micros() + n;
            let due = Timer { execute_at: domain::Timestamp::from_micros(micros), ..timer.clone() };
            let broker = process.broker.clone();
            async move { announce(&*broker, &due, 1, due.execute_at).await.unwrap() }
        })
        .await;
    let seconds = started.elapsed().as_secs_f64();
    println!("{COUNT} events in {seconds:.2} s: {:.0} events/s", COUNT as f64 / seconds);
    assert_eq!(witness.count(EVENTS).await, COUNT as u64);
    process.stop().await;
}
