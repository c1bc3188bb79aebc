//! Nodes come and go in order all the time: no receiver is called twice, and each shard nearly always has an owner.

use std::time::Duration;

use crate::{
    history::Mixture,
    rig::{Nodes, Receiver, Reply, alone, heavy, scaled},
    trial::{Outcome, Trial},
};

const HELD_MIN: f64 = 0.95;
const CALL_TIME: Duration = Duration::from_millis(50);
/// How many nodes there are to be, one change at a time.
const COUNTS: [usize; 3] = [3, 5, 2];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_nodes_come_and_go_nothing_is_lost_and_nothing_is_called_twice() {
    let _machine = heavy().await;
    let outcome = churn(&[3, 1], Duration::from_secs(1)).await;
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
}

#[ignore = "soak: measures a share of time, for an idle machine"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_nodes_come_and_go_every_shard_is_nearly_always_held() {
    let _machine = alone().await;
    let counts: Vec<usize> = COUNTS.into_iter().cycle().take(COUNTS.len() * scaled(1)).collect();
    let outcome = churn(&counts, Duration::from_secs(3)).await;
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    assert!(outcome.least_held >= HELD_MIN, "{}", outcome.least_held);
}

/// Has so many nodes, then so many, under load, with this time from one change to the next.
async fn churn(counts: &[usize], interval: Duration) -> Outcome {
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("nodes come and go", Nodes::start(1).await, receiver, CALL_TIME);
    trial.load(Mixture { creates_per_second: 100, ..Mixture::default() });
    let mut next = tokio::time::Instant::now();
    let mut changes = 0;
    for count in counts {
        while trial.nodes.services.len() != *count {
            if trial.nodes.services.len() < *count {
                trial.nodes.begin_another();
                trial.nodes.services.last_mut().expect("the new one").wait_until_healthy().await;
                trial.open_apis(0..trial.nodes.services.len());
            } else {
                let mut leaving = trial.nodes.services.pop().expect("there are some");
                trial.open_apis(0..trial.nodes.services.len());
                leaving.stop_with_calls_under_way().await;
            }
            changes += 1;
            next += interval;
            // The pace of the changes is what is tested.
            tokio::time::sleep_until(next).await;
        }
    }
    let (nodes, outcome) = trial.finish().await;
    println!(
        "nodes come and go: {changes} changes, every shard held for {:.1} % of the time at the least",
        outcome.least_held * 100.0
    );
    nodes.stop().await;
    outcome
}
