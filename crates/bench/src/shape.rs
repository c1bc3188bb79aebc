//! The sizes of the workloads: their usual ones, a tenth of them for a short run, or what the options say.

use std::time::Duration;

use crate::{
    ask::Ask,
    campaign::Campaign,
    load::Load,
    workload::{
        Workload,
        create::Creates,
        fire::Fires,
        life::Climb,
        mixed::{LISTS, Mixed},
        slow::Slow,
    },
};

const RATE: u32 = 1_000;
const MIXED_SECONDS: u64 = 30;
const SLOW_PAUSE: Duration = Duration::from_secs(5);
const SLOW_SECONDS: u32 = 20;
const CONNECTIONS: usize = 64;
const BURST_DESTINATIONS: usize = 1_000;

/// What is done in a workload.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Creates(Creates),
    Changes(Ask, Creates),
    Fires(Fires),
    Slow(Slow),
    Pile,
    Climb(Climb),
    /// With the rates of lists that are compared; 0 is none.
    Mixed(Mixed, &'static [u32]),
}

impl Shape {
    pub fn of(workload: Workload, campaign: &Campaign) -> Self {
        let timers = |usual: u64| campaign.timers.unwrap_or(if campaign.is_quick { usual / 10 } else { usual });
        let connections = |usual: usize| campaign.connections.unwrap_or(usual).max(1);
        let creates = |usual, usual_connections, timers_per_request| Creates {
            timers: timers(usual),
            load: Load { connections: connections(usual_connections), timers_per_request },
        };
        let fires = |usual, destinations, gap_micros| Self::Fires(Fires { timers: timers(usual), destinations, gap_micros });
        let rate = campaign.rate.unwrap_or(if campaign.is_quick { RATE / 10 } else { RATE });
        let count =
            campaign.timers.unwrap_or(u64::from(rate) * if campaign.is_quick { MIXED_SECONDS / 10 } else { MIXED_SECONDS });
        let mixed = Mixed { rate, count, connections: connections(CONNECTIONS) };
        match workload {
            Workload::W1 => Self::Creates(creates(20_000, CONNECTIONS, 1)),
            Workload::W1c => Self::Creates(creates(20_000, 256, 1)),
            Workload::W1b => Self::Creates(creates(100_000, 8, 500)),
            Workload::W2 => fires(20_000, 1, 0),
            Workload::W2x => fires(100_000, 100, 0),
            Workload::W3 => fires(15_000, 1, 2_000),
            Workload::W4 => Self::Pile,
            Workload::W5 => Self::Climb(climb(campaign.is_quick, connections(256))),
            Workload::Mixed => Self::Mixed(mixed, &LISTS[..1]),
            Workload::Lists => Self::Mixed(mixed, &LISTS),
            Workload::Cancels => Self::Changes(Ask::Cancel, creates(20_000, CONNECTIONS, 1)),
            Workload::Updates => Self::Changes(Ask::Update, creates(20_000, CONNECTIONS, 1)),
            Workload::Slow if campaign.is_quick => {
                Self::Slow(Slow { timers: timers(10_000), pause: SLOW_PAUSE / 10, seconds: SLOW_SECONDS / 10 })
            }
            Workload::Slow => Self::Slow(Slow { timers: timers(10_000), pause: SLOW_PAUSE, seconds: SLOW_SECONDS }),
            Workload::Burst => fires(1_000_000, BURST_DESTINATIONS, 0),
        }
    }

    /// How many receivers are called.
    pub const fn destinations(self) -> usize {
        match self {
            Self::Fires(fires) => fires.destinations,
            _ => 1,
        }
    }
}

const fn climb(is_quick: bool, connections: usize) -> Climb {
    if is_quick {
        Climb { first_rate: 500.0, factor: 2.0, step_seconds: 1.0, hold_seconds: 5.0, connections }
    } else {
        Climb { first_rate: 2_000.0, factor: 1.3, step_seconds: 3.0, hold_seconds: 60.0, connections }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::PathBuf};

    use super::*;

    fn campaign(is_quick: bool, timers: Option<u64>, rate: Option<u32>) -> Campaign {
        Campaign {
            workloads: Vec::new(),
            runs: 1,
            timers,
            rate,
            pending: 0,
            connections: None,
            sizes: Vec::new(),
            is_quick,
            leaves_pile: false,
            directory: PathBuf::new(),
            settings: BTreeMap::new(),
            note: None,
        }
    }

    #[test]
    fn mixed_load_lasts_half_a_minute_unless_its_number_is_given() {
        let table = [
            (campaign(false, None, None), (1_000, 30_000)),
            (campaign(true, None, None), (100, 300)),
            (campaign(false, None, Some(2_000)), (2_000, 60_000)),
            (campaign(true, Some(50), Some(25)), (25, 50)),
        ];
        for (campaign, expected) in table {
            let Shape::Mixed(mixed, lists) = Shape::of(Workload::Lists, &campaign) else { panic!("not mixed") };
            assert_eq!(((mixed.rate, mixed.count), lists), (expected, [0, 1, 20].as_slice()));
        }
    }

    #[test]
    fn a_burst_calls_a_thousand_receivers() {
        let shape = Shape::of(Workload::Burst, &campaign(false, None, None));
        assert_eq!(shape.destinations(), 1_000);
        assert!(matches!(shape, Shape::Fires(Fires { timers: 1_000_000, gap_micros: 0, .. })), "{shape:?}");
    }
}
