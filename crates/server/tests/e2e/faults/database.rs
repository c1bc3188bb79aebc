//! The database itself goes away for moments, or ends sessions.

use std::{sync::Arc, time::Duration};

use throwaway::Postgres;

use crate::{
    history::{Fault, Mixture},
    rig::{Backend, LEASE_MICROS, Nodes, Receiver, Reply, blocking, eventually, heavy, now, scaled, wait_for_wall},
    trial::Trial,
};

const NODES: usize = 3;
/// There are always calls under way, whose results have to wait for the database.
const CALL_TIME: Duration = Duration::from_millis(200);
/// What one node opens at most.
const SESSIONS_MAX: usize = 14;
const LONG_ONE_IN: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_falls_over_and_comes_back_costs_moments_and_no_receiver_is_called_twice() {
    let _machine = heavy().await;
    let postgres = Arc::new(Postgres::start());
    let nodes = Nodes::start_on(Backend::postgres_at(postgres.create_database()), Vec::new(), NODES).await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("PostgreSQL restarts", nodes, receiver, CALL_TIME);
    trial.load(Mixture::default());
    for round in 1..=scaled(5) {
        trial.wait_for_calls(50).await;
        let pause = trial.chance.millis(0..300);
        tokio::time::sleep(pause).await;
        let from = now();
        blocking(|| postgres.stop_immediate());
        if round.is_multiple_of(LONG_ONE_IN) {
            // Longer than every lease: the node that comes back first must not take the other nodes for dead.
            wait_for_wall(from + LEASE_MICROS + 500_000).await;
        }
        blocking(|| postgres.start_again());
        trial.faults.push(Fault::outage(from, now()));
        assert!(trial.nodes.services.iter_mut().all(|service| service.is_running()), "the services live");
    }
    trial.wait_for_calls(50).await;
    let (nodes, outcome) = trial.finish().await;
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_end_at_random_cost_nothing_but_time() {
    /// With each, one session of each node ends on the average.
    const ROUNDS: usize = 50;
    const AT_ONCE: usize = 2;
    const INTERVAL: Duration = Duration::from_millis(200);
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut trial = Trial::start("sessions ended", Nodes::start(NODES).await, receiver, CALL_TIME);
    let url = trial.nodes.backend.url().to_owned();
    trial.load(Mixture::default());
    let mut next = tokio::time::Instant::now();
    let mut ended = 0;
    for _ in 0..scaled(ROUNDS) {
        let seed = trial.chance.below(1_000_000) as f64 / 1e6;
        let sql = format!(
            "SELECT setseed({seed});
             SELECT count(pg_terminate_backend(pid)) FROM (
                 SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                 ORDER BY random() LIMIT {AT_ONCE}
             ) AS unlucky"
        );
        let said = blocking(|| throwaway::postgres().query(&url, &sql));
        ended += said.trim().parse::<usize>().expect("how many sessions ended");
        next += INTERVAL;
        tokio::time::sleep_until(next).await;
    }
    let (nodes, outcome) = trial.finish().await;
    println!("sessions ended: {ended}");
    assert!(ended >= scaled(ROUNDS), "too few to mean anything: {ended}");
    assert_eq!(outcome.summary.repeated, 0, "{}", outcome.summary);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    eventually("no session is left over", Duration::from_secs(10), async || {
        let sessions: usize = throwaway::postgres().query(nodes.backend.url(), open).parse().expect("a number");
        (sessions <= NODES * SESSIONS_MAX).then_some(())
    })
    .await;
    nodes.stop().await;
}
