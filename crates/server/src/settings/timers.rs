use clap::Args;
use domain::{Horizon, Invalid, Span};

use crate::values::{Setting, duration, number};

const NODE_NAME_CHARS_MAX: usize = 100;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What timers may be, and what becomes of them")]
pub struct TimerOptions {
    /// A timer must lie at least this far ahead. With 0s, one that was due up to a minute ago counts as due now
    #[arg(long, env = "MIN_DELAY", value_name = "DURATION", value_parser = duration(), default_value_t = Span::ZERO)]
    pub min_delay: Span,
    /// A timer may lie at most this far ahead; unset means no limit
    #[arg(long, env = "MAX_HORIZON", value_name = "DURATION", value_parser = duration())]
    pub max_horizon: Option<Span>,
    /// How long finished timers are kept
    #[arg(
        long,
        env = "RETENTION",
        value_name = "DURATION",
        value_parser = duration(),
        default_value_t = scheduler::Config::default().retention
    )]
    pub retention: Span,
    /// A timer without an expiry of its own that is later than this expires instead of being called; unset means that it is called however late
    #[arg(long, env = "OVERDUE_WINDOW", value_name = "DURATION", value_parser = overdue_window())]
    pub overdue_window: Option<Span>,
    /// Milliseconds between two sweeps for timers that a wake-up missed
    #[arg(
        long,
        env = "TIMER_POLLING_INTERVAL",
        value_name = "MILLISECONDS",
        value_parser = number(10..=60_000_u64),
        default_value_t = 1000
    )]
    pub polling_interval: u64,
    /// What to call this process among those that share a database; unset means the name of this machine, and the port
    #[arg(long, env = "NODE_NAME", value_name = "NAME", value_parser = node_name())]
    pub node_name: Option<String>,
    /// The most timers to claim at once
    #[arg(
        long,
        env = "TIMER_BATCH_SIZE",
        value_name = "COUNT",
        value_parser = number(1..=10_000_usize),
        default_value_t = scheduler::Config::default().claim_batch_max
    )]
    pub batch_size: usize,
}

impl TimerOptions {
    pub const fn horizon(&self) -> Horizon {
        Horizon { min_delay: self.min_delay, max_horizon: self.max_horizon }
    }
}

/// No call is made within no time: with a window of zero every timer would fail.
fn overdue_window() -> Setting<Span> {
    Setting::new(|setting, text| match Span::parse(setting, text)? {
        Span::ZERO => Err(Invalid::new(setting, "must be longer than 0s")),
        window => Ok(window),
    })
}

fn node_name() -> Setting<String> {
    Setting::new(|setting, name| {
        if name.chars().count() > NODE_NAME_CHARS_MAX || name.chars().any(char::is_control) {
            return Err(Invalid::new(setting, format!("must have at most {NODE_NAME_CHARS_MAX} printable characters")));
        }
        Ok(name.to_owned())
    })
}
