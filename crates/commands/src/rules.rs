use std::{fmt, sync::Arc};

use domain::{Callback, CallbackUrl, Horizon, Invalid, Span};

/// Refuses addresses that no callback may reach, as far as they can be told without asking a name server.
pub type AddressCheck = Arc<dyn Fn(&CallbackUrl) -> Result<(), Invalid> + Send + Sync>;

/// What this installation allows.
#[derive(Clone)]
pub struct Rules {
    pub horizon: Horizon,
    /// Whether there is a NATS server to publish to.
    pub nats: bool,
    pub address: AddressCheck,
}

/// How near a timer may be: a question of the door it came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Soonest {
    /// Not before the configured minimum delay.
    #[default]
    MinDelay,
    /// Any time that is not past.
    Now,
}

impl Rules {
    pub(crate) fn horizon(&self, soonest: Soonest) -> Horizon {
        match soonest {
            Soonest::MinDelay => self.horizon,
            Soonest::Now => Horizon { min_delay: Span::ZERO, ..self.horizon },
        }
    }

    pub(crate) fn check(&self, callback: &Callback) -> Result<(), Invalid> {
        match callback {
            Callback::Http(http) => (self.address)(&http.url),
            Callback::Nats(_) if self.nats => Ok(()),
            Callback::Nats(_) => Err(Invalid::new("callback.type", "must be http: no NATS server is configured")),
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("horizon", &self.horizon).field("nats", &self.nats).finish_non_exhaustive()
    }
}
