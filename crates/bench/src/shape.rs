//! The sizes of the workloads: their usual ones, a tenth of them for a short run, or what the options say.

use std::time::Duration;

use crate::{
    ask::Ask,
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

/// What the options of a campaign say of the sizes of its workloads.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub timers: Option<u64>,
    pub connections: Option<usize>,
    pub rate: Option<u32>,
    pub is_quick: bool,
}

/// What is done in a workload.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Creates(Creates),
    Changes(Ask, Creates),
    Fires(Fires),
    Slow(Slow),
    Pile,
    Climb(Climb),
    /// A mixed load, with the rates of lists that are compared; 0 is none.
    Mixed(Mixed, &'static [u32]),
}

impl Shape {
    pub fn of(workload: Workload, scale: Scale) -> Self {
        let timers = |usual: u64| scale.timers.unwrap_or(if scale.is_quick { usual / 10 } else { usual });
        let connections = |usual: usize| scale.connections.unwrap_or(usual).max(1);
        let creates = |usual, usual_connections, timers_per_request| Creates {
            timers: timers(usual),
            load: Load { connections: connections(usual_connections), timers_per_request },
        };
        let fires = |usual, destinations, gap_micros| Self::Fires(Fires { timers: timers(usual), destinations, gap_micros });
        let rate = scale.rate.unwrap_or(if scale.is_quick { RATE / 10 } else { RATE });
        let count = scale.timers.unwrap_or(u64::from(rate) * if scale.is_quick { MIXED_SECONDS / 10 } else { MIXED_SECONDS });
        let mixed = Mixed { rate, count, connections: connections(CONNECTIONS) };
        match workload {
            Workload::W1 => Self::Creates(creates(20_000, CONNECTIONS, 1)),
            Workload::W1c => Self::Creates(creates(20_000, 256, 1)),
            Workload::W1b => Self::Creates(creates(100_000, 8, 500)),
            Workload::W2 => fires(20_000, 1, 0),
            Workload::W2x => fires(100_000, 100, 0),
            Workload::W3 => fires(15_000, 1, 2_000),
            Workload::W4 => Self::Pile,
            Workload::W5 => Self::Climb(climb(scale.is_quick, connections(256))),
            Workload::Mixed => Self::Mixed(mixed, &LISTS[..1]),
            Workload::Lists => Self::Mixed(mixed, &LISTS),
            Workload::Cancels => Self::Changes(Ask::Cancel, creates(20_000, CONNECTIONS, 1)),
            Workload::Updates => Self::Changes(Ask::Update, creates(20_000, CONNECTIONS, 1)),
            Workload::Slow if scale.is_quick => {
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
    use super::*;

    fn scale(is_quick: bool, timers: Option<u64>, rate: Option<u32>) -> Scale {
        Scale { timers, connections: None, rate, is_quick }
    }

    #[test]
    fn mixed_load_lasts_half_a_minute_unless_its_number_is_given() {
        let table = [
            (scale(false, None, None), (1_000, 30_000)),
            (scale(true, None, None), (100, 300)),
            (scale(false, None, Some(2_000)), (2_000, 60_000)),
            (scale(true, Some(50), Some(25)), (25, 50)),
        ];
        for (scale, expected) in table {
            let Shape::Mixed(mixed, lists) = Shape::of(Workload::Lists, scale) else { panic!("not mixed") };
            assert_eq!(((mixed.rate, mixed.count), lists), (expected, [0, 1, 20].as_slice()));
        }
    }

    #[test]
    fn a_burst_calls_a_thousand_receivers() {
        let shape = Shape::of(Workload::Burst, scale(false, None, None));
        assert_eq!(shape.destinations(), 1_000);
        assert!(matches!(shape, Shape::Fires(Fires { timers: 1_000_000, gap_micros: 0, .. })), "{shape:?}");
    }
}
