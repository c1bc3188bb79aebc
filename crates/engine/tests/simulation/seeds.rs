use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    ledger::{Check, PipelineMetrics},
    planted::Bug,
    world::{Ended, run},
};

/// As many as a machine with two cores does in half a minute without optimization. `SIM_SEEDS` asks for another number.
const SEEDS_DEFAULT: u64 = 200;
const THREADS: usize = 2;

impl PipelineMetrics {
    fn add(&mut self, other: &Self) {
        self.timers += other.timers;
        self.calls += other.calls;
        self.taken_over += other.taken_over;
        self.repeated += other.repeated;
        self.fenced += other.fenced;
        self.gaps += other.gaps;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn seeds() -> u64 {
    number("SIM_SEEDS").unwrap_or(SEEDS_DEFAULT)
}

/// Says what went wrong, and how to see it again.
fn report(seed: u64, ended: &Ended) -> String {
    let violations: Vec<_> = ended.violations.iter().take(5).map(|found| format!("{:?}: {}", found.check, found.what)).collect();
    format!(
        "seed {seed}: {}\n  SIM_SEED={seed} cargo test -p engine --test simulation one_seed -- --nocapture",
        violations.join("; ")
    )
}

#[test]
fn what_must_hold_holds_whatever_goes_wrong() {
    let (next, failures, sum) = (AtomicU64::new(0), Mutex::new(Vec::new()), Mutex::new(PipelineMetrics::default()));
    // One number for all stories: a change that should change no behaviour should not change it.
    let stories = AtomicU64::new(0);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds() {
                return;
            }
            let ended = run(seed, None);
            sum.lock().unwrap().add(&ended.metrics);
            stories.fetch_xor(ended.hash, Ordering::Relaxed);
            if !ended.violations.is_empty() {
                failures.lock().unwrap().push(report(seed, &ended));
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().unwrap();
    let sum = sum.into_inner().unwrap();
    println!("{} seeds, {} with violations: {sum:?}, stories {:016x}", seeds(), failures.len(), stories.into_inner());
    assert!(failures.is_empty(), "{} of {} seeds:\n{}", failures.len(), seeds(), failures.join("\n"));
    let happened = [sum.calls, sum.taken_over, sum.repeated, sum.fenced, sum.gaps];
    assert!(seeds() < 100 || happened.iter().all(|count| *count > 0), "little happened: {sum:?}");
}

/// For looking at one seed: `SIM_SEED` names it, and `SIM_BUG` a planted mistake by its number.
#[test]
fn one_seed() {
    let seed = number("SIM_SEED").unwrap_or(2);
    let bug = number("SIM_BUG").map(|number| FOUND_BY[usize::try_from(number).unwrap()].0);
    let ended = run(seed, bug);
    if number("SIM_SEED").is_some() {
        ended.story.iter().for_each(|line| println!("{line}"));
    }
    assert!(ended.metrics.timers > 0 && ended.metrics.calls > 0, "nothing happened");
    assert!(ended.violations.is_empty(), "{}", report(seed, &ended));
}

#[test]
fn the_same_seed_is_the_same_story() {
    let mut hashes = BTreeMap::new();
    for seed in 0..10 {
        let (first, second) = (run(seed, None), run(seed, None));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        hashes.insert(first.hash, seed);
    }
    assert_eq!(hashes.len(), 10, "every seed is another story");
}

/// Every mistake, and what it is found by.
const FOUND_BY: [(Bug, Check); 12] = [
    (Bug::SettlesWithoutClaim, Check::Claim),
    (Bug::DeletesByRange, Check::Lost),
    (Bug::ResumesWhereItWasRead, Check::Stuck),
    (Bug::ClaimsAreRetriedAnew, Check::Stuck),
    (Bug::NothingIsSwept, Check::Stuck),
    (Bug::CreateIsNotReadBack, Check::Lost),
    (Bug::LeaseByTheWallClock, Check::Lease),
    (Bug::CancelsWithoutLooking, Check::State),
    (Bug::TakesFromTheLiving, Check::Duplicate),
    (Bug::TheLoopEndsOnAnError, Check::Stuck),
    (Bug::TrustsItsOwnClock, Check::Early),
    (Bug::DeliversAnOldVersion, Check::Ghost),
];

#[test]
fn planted_bugs_are_found() {
    let (next, found) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let index = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
            let Some((bug, check)) = FOUND_BY.get(index) else { return };
            let is_found = |seed: &u64| run(*seed, Some(*bug)).violations.iter().any(|violation| violation.check == *check);
            found.lock().unwrap().insert(index, (0..seeds()).find(is_found));
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let found = found.into_inner().unwrap();
    found.iter().for_each(|(index, seed)| println!("{:?}: {seed:?}", FOUND_BY[*index]));
    let missed: Vec<_> = found.iter().filter(|(_, seed)| seed.is_none()).map(|(index, _)| FOUND_BY[*index]).collect();
    assert!(missed.is_empty(), "not found in {} seeds: {missed:?}", seeds());
}
