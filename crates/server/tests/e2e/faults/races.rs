//! Cancels, updates and reads of one timer by several callers at the very moment it is due, while nodes are killed and paused:
//! there is one order of things that explains every answer.

use std::{sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

use crate::{
    history::{Apis, Asker, Fault},
    rig::{LEASE_MICROS, Nodes, Receiver, Reply, heavy, now, scaled, wait_for_wall, wait_until_shared},
    trial::Trial,
};

const NODES: usize = 3;
const TIMERS: usize = 600;
const CALLERS: usize = 8;
const ACTS_MAX: usize = 4;
const AROUND_MICROS: i64 = 50_000;
const DELAY_MILLIS: std::ops::Range<u32> = 300..900;
/// One timer in so many is asked for long before it is due: some cancels and updates win, however busy the machine is.
const CERTAIN_ONE_IN: u32 = 10;
const CERTAIN_MILLIS: u32 = 4_000;
const CALL_TIME: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_about_a_timer_is_true_however_close_to_its_time_it_is_asked_for() {
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("races", Nodes::start(NODES).await, receiver, CALL_TIME);
    let asker = Asker::new(trial.receiver.url("/race"), Arc::clone(&trial.history));
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let numbers = StdRng::seed_from_u64(trial.chance.seed().wrapping_add(number as u64));
        callers.spawn(race(asker.clone(), trial.apis.clone(), scaled(TIMERS) / CALLERS, numbers));
    }
    let mut disturbances = 0;
    while !callers.is_empty() {
        // The last of them may end with fewer calls to come than are waited for.
        tokio::select! {
            () = trial.wait_for_calls(20) => {
                disturb(&mut trial).await;
                disturbances += 1;
            }
            Some(caller) = callers.join_next() => caller.expect("a caller"),
        }
    }
    let (nodes, outcome) = trial.finish().await;
    println!("races: {TIMERS} timers, {disturbances} rounds of a kill and a pause");
    assert!(outcome.summary.canceled > 0 && outcome.summary.updated > 0, "{}", outcome.summary);
    nodes.stop().await;
}

/// One node is killed and comes back at once, another is paused until its lease is over.
async fn disturb(trial: &mut Trial) {
    let [victim, paused, staying] = trial.chance.some(NODES, NODES)[..] else { unreachable!("as many as there are") };
    let client = trial.nodes.services[staying].client();
    trial.open_apis([staying, victim]);
    let pause = trial.chance.millis(0..500);
    tokio::time::sleep(pause).await;
    trial.nodes.services[paused].signal("STOP");
    let from = now();
    trial.nodes.services[victim].kill();
    trial.faults.push(Fault::kill(now()));
    trial.nodes.services[victim].start_again().await;
    wait_for_wall(from + LEASE_MICROS + 500_000).await;
    let to = now();
    trial.nodes.services[paused].signal("CONT");
    trial.faults.push(Fault::pause(from, to));
    wait_until_shared(&client, NODES).await;
    trial.open_apis(0..NODES);
}

/// Registers timers, and has several things done to each at once, to most of them when they are due.
async fn race(asker: Asker, apis: Apis, timers: usize, mut numbers: StdRng) {
    /// The time between two timers of one caller.
    const BETWEEN: Duration = Duration::from_millis(60);
    let mut racing = JoinSet::new();
    for _ in 0..timers {
        let (asker, apis, mut numbers) = (asker.clone(), apis.clone(), StdRng::from_rng(&mut numbers));
        racing.spawn(async move {
            let ahead = if numbers.random_ratio(1, CERTAIN_ONE_IN) { CERTAIN_MILLIS } else { 0 };
            let (key, delay) = (asker.new_key(), numbers.random_range(DELAY_MILLIS) + ahead);
            // Around this time it is asked for.
            let around = now() + i64::from(delay - ahead) * 1_000;
            if !asker.create(&apis.any(&mut numbers), &key, delay).await {
                return;
            }
            let mut acts = JoinSet::new();
            for number in 0..numbers.random_range(1..=ACTS_MAX) {
                let (asker, key, client) = (asker.clone(), key.clone(), apis.any(&mut numbers));
                let (at, act, later) = (
                    around + numbers.random_range(-AROUND_MICROS..=AROUND_MICROS),
                    numbers.random_range(0..3),
                    numbers.random_range(0..300),
                );
                acts.spawn(async move {
                    wait_for_wall(at).await;
                    match act {
                        0 => asker.cancel(&client, &key).await,
                        1 => asker.update(&client, &key, 2 + u32::try_from(number).expect("few"), later).await,
                        _ => asker.read(&client, &key).await,
                    }
                });
            }
            acts.join_all().await;
        });
        tokio::time::sleep(BETWEEN).await;
    }
    racing.join_all().await;
}
