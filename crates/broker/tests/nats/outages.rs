use std::time::Duration;

use broker::{BrokerError, announce};
use domain::{Span, Timer};
use store::Operation;
use throwaway::Nats;
use tokio::time::Instant;

use crate::rig::{COMMANDS, EVENTS, Process, Witness, command, until};

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    let nats = Nats::start();
    nats.stop_immediate();
    let process = Process::start(&nats.url());
    let timer = {
        let other = Nats::start();
        let helper = Process::start(&other.url());
        let witness = Witness::at(&other).await;
        witness.until_ready().await;
        witness.send(command("a")).await;
        helper.scheduled(1).await;
        helper.timer("a").await.unwrap()
    };
    let error = announce(&*process.broker, &timer, 1, None, timer.execute_at).await.unwrap_err();
    assert!(matches!(error, BrokerError::Away(_)), "{error}");
    nats.start_again();
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    announce(&*process.broker, &timer, 1, None, timer.execute_at).await.unwrap();
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_again_and_again_loses_no_acknowledged_command() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    let url = nats.url();
    let sending = tokio::spawn(async move {
        let witness = Witness::of(&url).await;
        for n in 0..600 {
            witness.send_surely(&command(&n.to_string())).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    for round in 1..=3 {
        process.until_timers(round * 100).await;
        tokio::task::block_in_place(|| {
            nats.stop_immediate();
            nats.start_again();
        });
    }
    sending.await.unwrap();
    process.until_timers(600).await;
    witness.until_settled().await;
    assert_eq!(process.timers().await, 600);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_tried_until_they_are_taken_are_kept_once_each() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    let timer = process.timer("a").await.unwrap();
    let (broker, due) = (process.broker.clone(), timer.execute_at);
    let announcing = tokio::spawn(async move {
        let mut failed = 0;
        for n in 0..1000 {
            let timer = Timer { execute_at: due.saturating_add(Span::from_secs(n)), ..timer.clone() };
            while announce(&*broker, &timer, 1, None, due).await.is_err() {
                failed += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        failed
    });
    for round in 1..=3 {
        until(async || witness.stream(EVENTS).await.is_some_and(|stream| stream.state.messages >= round * 200)).await;
        tokio::task::block_in_place(|| {
            nats.stop_immediate();
            nats.start_again();
        });
    }
    assert!(announcing.await.unwrap() > 0, "the server was never away when it mattered");
    assert_eq!(witness.count(EVENTS).await, 1000);
    process.stop().await;
}

#[tokio::test]
async fn a_server_that_freezes_is_noticed_and_found_again() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    nats.pause();
    tokio::time::sleep(Duration::from_secs(4)).await;
    nats.resume();
    witness.send_surely(&command("a")).await;
    let back = Instant::now();
    process.scheduled(1).await;
    assert!(back.elapsed() < Duration::from_secs(8), "{:?}", back.elapsed());
    process.stop().await;
}

#[tokio::test]
async fn streams_and_consumer_that_vanish_are_made_again() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    witness.until_settled().await;

    witness.context.get_stream(COMMANDS).await.unwrap().delete_consumer("timer").await.unwrap();
    let gone = Instant::now();
    witness.until_ready().await;
    witness.send(command("b")).await;
    until(async || process.timer("b").await.is_some()).await;
    assert!(gone.elapsed() < Duration::from_secs(5), "{:?}", gone.elapsed());

    for stream in [COMMANDS, EVENTS] {
        witness.context.delete_stream(stream).await.unwrap();
    }
    let gone = Instant::now();
    witness.until_ready().await;
    witness.send(command("c")).await;
    until(async || process.timer("c").await.is_some()).await;
    assert!(gone.elapsed() < Duration::from_secs(5), "{:?}", gone.elapsed());
    process.stop().await;
}

#[tokio::test]
async fn a_store_that_is_away_delays_commands_and_loses_none() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    process.store.set_down(true);
    witness.send_all((0..1000).map(|n| command(&n.to_string()))).await;
    until(async || process.store.calls(Operation::Create) >= 4).await;
    process.store.set_down(false);
    process.until_timers(1000).await;
    witness.until_settled().await;
    process.stop().await;
}
