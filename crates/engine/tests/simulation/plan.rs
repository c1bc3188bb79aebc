use std::time::Duration;

use domain::Span;
use store_testing::Odds;

use super::dice::Dice;

/// What is going to happen, as far as it is decided beforehand. It follows from the seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub troubles: Vec<Trouble>,
    /// From one trouble to the next, in milliseconds, at most.
    pub pause_millis_max: u64,
    pub odds: Odds,
    pub are_nudges_lost: bool,
    pub latency_millis_max: u64,
    /// For how long things go wrong.
    pub length: Duration,
    pub timers: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A process dies and is started again.
    Crash,
    /// A process stands still.
    Pause,
    /// A machine stands still, and its clock with it.
    Suspend,
    /// A clock is set.
    Step,
    /// The database is away.
    Outage,
    /// The database is away for one node only, and may leave it without any answer.
    Cut,
    /// A process is asked to stop, and is started again.
    Leave,
}

impl Trouble {
    const ALL: [Self; 7] = [Self::Crash, Self::Pause, Self::Suspend, Self::Step, Self::Outage, Self::Cut, Self::Leave];
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let troubles = match seed % 8 {
            0 => Vec::new(),
            1 => vec![Trouble::Leave],
            2 => Trouble::ALL.to_vec(),
            _ => {
                let mut some = Trouble::ALL.to_vec();
                some.retain(|_| dice.percent(50));
                some
            }
        };
        let odds = match seed % 8 {
            // Only what is done to the nodes explains anything then.
            0 | 1 | 3 => Odds::default(),
            _ => Odds {
                not_done_per_mille: 10,
                done_unknown_per_mille: 10,
                not_done_unknown_per_mille: 10,
                late_per_mille: 10,
                late_answer_per_mille: 10,
                late_by_max: Span::from_secs(if dice.percent(50) { 2 } else { 30 }),
            },
        };
        let length = match seed {
            _ if seed % 512 == 511 => Duration::from_secs(3_600),
            _ if seed % 64 == 63 => Duration::from_secs(900),
            _ => dice.millis(30_000, 90_000),
        };
        Self {
            seed,
            troubles,
            pause_millis_max: if dice.percent(50) { 4_000 } else { 12_000 },
            odds,
            are_nudges_lost: seed % 8 > 1 && dice.percent(40),
            latency_millis_max: dice.below(6),
            length,
            timers: 20 + dice.below(40) + length.as_secs() / 5,
        }
    }

    /// Whether the store itself may fail, so that anything can be late or lost on its way.
    pub fn is_store_faulty(&self) -> bool {
        self.odds != Odds::default() || self.troubles.contains(&Trouble::Outage)
    }

    pub fn is_free_of_faults(&self) -> bool {
        self.troubles.is_empty() && !self.is_store_faulty()
    }
}
