use std::time::Duration;

use async_nats::jetstream::{consumer, stream};
use domain::Span;
use store::Operation;
use store_testing::Fault;
use throwaway::Nats;
use tokio::time::Instant;

use crate::rig::{COMMANDS, Process, Witness, command, until};

/// The ack wait, after which the commands of a killed process are redelivered.
const VERDICT_WITHIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_consumer_that_stops_leaves_nothing_that_another_process_has_to_wait_for() {
    let nats = Nats::start();
    let first = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    // While the first batch is being written, the next one is fetched.
    first.store.plan(Operation::Create, Fault::LateAnswer(Span::from_millis(1500)));
    let sent = Instant::now();
    witness.send_all((0..3000).map(|n| command(&n.to_string()))).await;
    until(async || witness.consumer().await.unwrap().num_ack_pending >= 512).await;
    first.stop().await;
    let left = witness.consumer().await.unwrap();
    let second = Process::start(&nats.url());
    until(async || first.timers().await + second.timers().await == 3000).await;
    witness.until_settled().await;
    assert!(sent.elapsed() < VERDICT_WITHIN - Duration::from_secs(2), "{:?}", sent.elapsed());
    assert!((1..3000).contains(&first.timers().await), "{left:?}");
    second.stop().await;
}

#[tokio::test]
async fn a_consumer_that_is_idle_stops_soon_and_loses_nothing_that_arrives_meanwhile() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    for round in 0..3 {
        let process = Process::start(&nats.url());
        witness.until_ready().await;
        let stopping = Instant::now();
        let key = round.to_string();
        let sending = async {
            for n in 0..200 {
                witness.send(command(&format!("{key}-{n}"))).await;
            }
        };
        tokio::join!(process.stop(), sending);
        assert!(stopping.elapsed() < Duration::from_secs(4), "{:?}", stopping.elapsed());
        let next = Process::start(&nats.url());
        until(async || process.timers().await + next.timers().await == 200).await;
        witness.until_settled().await;
        assert!(stopping.elapsed() < VERDICT_WITHIN - Duration::from_secs(2), "{:?}", stopping.elapsed());
        next.stop().await;
    }
}

#[tokio::test]
async fn what_a_killed_process_had_goes_to_another() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    let stream =
        stream::Config { name: COMMANDS.to_owned(), subjects: vec!["timer.commands.>".to_owned()], ..stream::Config::default() };
    let stream = witness.context.create_stream(stream).await.unwrap();
    let impatient = consumer::pull::Config {
        durable_name: Some("timer".to_owned()),
        ack_wait: Duration::from_secs(1),
        ..consumer::pull::Config::default()
    };
    stream.create_consumer(impatient).await.unwrap();
    let first = Process::start(&nats.url());
    first.store.plan(Operation::Create, Fault::Late(Span::from_secs(3600)));
    witness.send_all((0..1000).map(|n| command(&n.to_string()))).await;
    until(async || witness.consumer().await.unwrap().num_ack_pending >= 512).await;
    first.kill();
    let second = Process::start(&nats.url());
    second.until_timers(1000).await;
    witness.until_settled().await;
    assert_eq!((first.timers().await, second.timers().await), (0, 1000));
    second.stop().await;
}
