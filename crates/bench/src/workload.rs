//! The workloads, each one thing that a service must be good at.

pub mod change;
pub mod create;
pub mod fire;
pub mod life;
pub mod mixed;
pub mod pending;
pub mod slow;

use std::{fmt, str::FromStr};

use crate::error::Failed;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    W1,
    W1c,
    W1b,
    W2,
    W2x,
    W3,
    W4,
    W5,
    Mixed,
    Lists,
    Cancels,
    Updates,
    Slow,
    Burst,
}

impl Workload {
    /// How fast a service is.
    pub const USUAL: [Self; 8] = [Self::W1, Self::W1c, Self::W1b, Self::W2, Self::W2x, Self::W3, Self::W4, Self::W5];
    /// Where a service may become slow all at once.
    pub const CLIFFS: [Self; 6] = [Self::Mixed, Self::Lists, Self::Cancels, Self::Updates, Self::Slow, Self::Burst];

    pub fn all() -> impl Iterator<Item = Self> {
        Self::USUAL.into_iter().chain(Self::CLIFFS)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W1c => "w1c",
            Self::W1b => "w1b",
            Self::W2 => "w2",
            Self::W2x => "w2x",
            Self::W3 => "w3",
            Self::W4 => "w4",
            Self::W5 => life::NAME,
            Self::Mixed => "mixed",
            Self::Lists => "lists",
            Self::Cancels => "cancels",
            Self::Updates => "updates",
            Self::Slow => "slow",
            Self::Burst => "burst",
        }
    }

    /// What the workload measures, for readers of the report.
    pub const fn about(self) -> &'static str {
        match self {
            Self::W1 => "creates over 64 connections",
            Self::W1c => "creates over 256 connections",
            Self::W1b => "creates in batches of 500",
            Self::W2 => "calls to one receiver, all due at one instant",
            Self::W2x => "calls to 100 receivers, all due at one instant",
            Self::W3 => "lateness of one call every 2 ms",
            Self::W4 => "many pending timers",
            Self::W5 => "creates and calls at one steady rate",
            Self::Mixed => "creates, cancels and calls at one rate each beside many pending timers",
            Self::Lists => "the same beside so many lists a second",
            Self::Cancels => "cancels of single timers over 64 connections",
            Self::Updates => "updates of single timers over 64 connections",
            Self::Slow => "calls to a fast receiver beside a slow one",
            Self::Burst => "calls to 1,000 receivers, all due at one instant",
        }
    }

    /// The workload of a run, whose name may have more words: `lists 20/s`.
    pub fn of_run(name: &str) -> Option<Self> {
        let first = name.split(' ').next()?;
        Self::all().find(|workload| workload.name() == first)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        let found = Self::all().find(|workload| workload.name().eq_ignore_ascii_case(text));
        let names = || Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| Failed::Option(format!("there is no workload {text}: choose from {}.", names())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_known_by_their_names_and_unknown_ones_are_refused() {
        for workload in Workload::all() {
            assert_eq!(workload.name().parse::<Workload>().unwrap(), workload);
            assert_eq!(Workload::of_run(workload.name()), Some(workload));
        }
        assert_eq!(Workload::of_run("lists 20/s"), Some(Workload::Lists));
        assert_eq!("W2X".parse::<Workload>().unwrap(), Workload::W2x);
        let refusal = "w6".parse::<Workload>().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "there is no workload w6: choose from w1, w1c, w1b, w2, w2x, w3, w4, w5, mixed, lists, cancels, updates, slow, burst."
        );
    }
}
