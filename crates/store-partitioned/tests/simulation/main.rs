//! Several nodes on one partitioned database, and what can go wrong between its single writes: in one thread, in simulated time.
//!
//! ```text
//!   node: heartbeats, claims, calls, settles ──▶ PartitionedStore ──▶ Network ──▶ Memory
//!                                                                     latency, pauses, lost answers, late writes
//!   Audit: was every claim that was handed out made under the epoch that stood when it was written?
//! ```
//!
//! The simulation of the engine treats each call of a store as one step. Here the steps are the calls of the database, so that a take-over
//! can come between the write of a claim and its verification. Everything follows from a seed:
//! `SIM_SEED=7 cargo test -p store-partitioned --test simulation one_seed`.

#![expect(clippy::unwrap_used, reason = "a test may stop where it is")]

mod audit;
mod dice;
mod late_writes;
mod network;
mod node;
mod repeated_pages;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use store_partitioned::Bug;

use self::{audit::Check, world::run};

const SEEDS_DEFAULT: u64 = 200;
/// Among so many a planted bug must be found.
const PLANTED_SEEDS_MAX: u64 = 300;
const THREADS: usize = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn seeds() -> u64 {
    number("SIM_SEEDS").unwrap_or(SEEDS_DEFAULT)
}

#[test]
fn what_must_hold_holds_whatever_goes_wrong() {
    let (next, failures) = (AtomicU64::new(0), std::sync::Mutex::new(Vec::new()));
    let happened = [const { AtomicU64::new(0) }; 4];
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds() {
                return;
            }
            let ended = run(seed, None);
            for (sum, count) in happened.iter().zip([ended.calls, ended.recoveries, ended.overtaken, ended.unknown]) {
                sum.fetch_add(count, Ordering::Relaxed);
            }
            if !ended.violations.is_empty() {
                failures.lock().unwrap().push(format!("seed {seed}: {:?}", ended.violations));
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().unwrap();
    let happened = happened.map(AtomicU64::into_inner);
    println!("{} seeds: calls, recoveries, overtaken claims, unknown outcomes: {happened:?}", seeds());
    assert!(failures.is_empty(), "{} of {} seeds:\n{}", failures.len(), seeds(), failures.join("\n"));
    assert!(seeds() < 100 || happened.iter().all(|count| *count > 0), "little happened: {happened:?}");
}

/// For looking at one seed: `SIM_SEED` names it.
#[test]
fn one_seed() {
    let seed = number("SIM_SEED").unwrap_or(2);
    let ended = run(seed, None);
    assert!(ended.calls > 0, "nothing happened");
    assert!(ended.violations.is_empty(), "seed {seed}: {:?}", ended.violations);
}

#[test]
fn planted_bugs_are_found() {
    for (bug, check) in
        [(Bug::VerificationSkipped, Check::Fence), (Bug::StaleEpoch, Check::Fence), (Bug::LeftBehind, Check::Stuck)]
    {
        let is_found = |seed: &u64| run(*seed, Some(bug)).violations.iter().any(|(found, _)| *found == check);
        let found = (0..seeds().max(PLANTED_SEEDS_MAX)).find(is_found);
        println!("{bug:?}: {found:?}");
        assert!(found.is_some(), "{bug:?} was not found");
    }
}
