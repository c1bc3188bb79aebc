//! The links to the database break: answers are lost, or nothing passes any more and neither side is told.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{
    history::{Fault, Mixture},
    lateness::Lateness,
    rig::{Link, Nodes, Receiver, Reply, heavy, now, scaled, tolerated, wait_until_shared},
    trial::Trial,
};

const NODES: usize = 3;
const CALL_TIME: Duration = Duration::from_millis(50);
const SESSIONS_GIVEN_UP: &str = "timer_postgres_sessions_discarded_total";
const MISSING_TIMER: &str = "/timers/00000000-0000-7000-8000-000000000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_the_database_that_are_lost_make_no_timer_and_no_call_twice() {
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_over(NODES, Link::start).await;
    let mut trial = Trial::start("answers lost", nodes, receiver, CALL_TIME);
    trial.load(Mixture { repeats_creates: true, ..Mixture::default() });
    for _ in 0..scaled(30) {
        let (number, held) = (trial.chance.below(NODES), trial.chance.millis(20..120));
        trial.nodes.links[number].lose_answers(held).await;
        let pause = trial.chance.millis(50..200);
        tokio::time::sleep(pause).await;
    }
    trial.wait_for_calls(50).await;
    let cuts = scaled(30);
    let (nodes, outcome) = trial.finish().await;
    let clients = nodes.clients();
    let given_up: f64 = join_all(clients.iter().map(|client| client.metric_sum(SESSIONS_GIVEN_UP))).await.iter().sum();
    println!("answers lost: {cuts} times, then the connections cut: {given_up} sessions were given up");
    assert!(given_up > 0.0, "no answer was lost");
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    assert!(outcome.summary.unanswered < outcome.summary.created / 10, "repeated creates find their timer: {}", outcome.summary);
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_without_being_told_is_replaced_and_comes_back() {
    const AT_ONCE: usize = 2;
    /// A call of the store may take five.
    const ANSWER_SECONDS_MAX: f64 = 7.0;
    const BACK_SECONDS_MAX: f64 = 8.0;
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let nodes = Nodes::start_over(NODES, Link::start).await;
    let mut trial = Trial::start("links fell silent", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());
    let longest = if scaled(1) > 1 { 20_000 } else { 8_000 };
    let mut returns = Vec::new();
    for _ in 0..scaled(2) {
        trial.wait_for_calls(50).await;
        let silent = trial.chance.some(AT_ONCE, NODES);
        let staying = (0..NODES).find(|number| !silent.contains(number)).expect("one stays");
        let client = trial.nodes.services[staying].client();
        trial.open_apis([staying]);
        let ends: Vec<_> = silent.iter().map(|_| tokio::time::Instant::now() + trial.chance.millis(5_000..longest)).collect();
        let from = now();
        silent.iter().for_each(|number| trial.nodes.links[*number].fall_silent());
        trial.faults.extend([Fault::silence(from)]);
        // A client that asks them is told, and soon.
        let answers = join_all(silent.iter().map(|number| {
            let client = trial.nodes.services[*number].client();
            async move { (client.get(MISSING_TIMER).await.status, (now() - from) as f64 / 1e6) }
        }))
        .await;
        for (status, took) in answers {
            assert!(status == 503 && took < tolerated(ANSWER_SECONDS_MAX), "{status} after {took} s");
        }
        for (number, end) in silent.iter().zip(ends) {
            // The length of the silence is what is tested.
            tokio::time::sleep_until(end).await;
            trial.nodes.links[*number].heal();
        }
        let healed = now();
        wait_until_shared(&client, NODES).await;
        returns.push(now() - healed);
        // All sessions that hung are free again.
        for number in silent {
            let client = trial.nodes.services[number].client();
            let answers = join_all((0..8).map(|_| client.get(MISSING_TIMER))).await;
            assert!(answers.iter().all(|answer| answer.status == 404), "{answers:?}");
        }
        trial.open_apis(0..NODES);
    }
    let (nodes, _) = trial.finish().await;
    let returns = Lateness::of(returns);
    println!("links fell silent: {returns} after their return every node had its share again");
    assert!(returns.max() < tolerated(BACK_SECONDS_MAX) * 1e3, "{returns}");
    nodes.stop().await;
}
