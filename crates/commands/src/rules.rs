use std::{fmt, sync::Arc};

use domain::{Callback, CallbackUrl, Endpoint, Horizon, Invalid, Namespace, RequestedTime, Span, Subject, Timestamp};

/// Refuses addresses that no callback may reach, as far as they can be told without asking a name server.
pub type AddressCheck = Arc<dyn Fn(&CallbackUrl) -> Result<(), Invalid> + Send + Sync>;

/// Refuses subjects that no callback of a namespace may publish to.
pub type SubjectCheck = Arc<dyn Fn(&Namespace, &Subject) -> Result<(), Invalid> + Send + Sync>;

/// What this installation allows.
#[derive(Clone)]
pub struct Rules {
    pub horizon: Horizon,
    /// Where callbacks may publish to; `None` where there is no NATS server.
    pub nats: Option<SubjectCheck>,
    pub address: AddressCheck,
}

/// How near a timer may be: a question of the API it came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarliestAllowed {
    /// Not before the configured minimum delay.
    #[default]
    MinDelay,
    /// Any time that is not past, or only just.
    Now,
    /// Any time at all: one that is past is due at once. For requests that may have waited on their way here.
    Any,
}

impl Rules {
    /// The instant that is meant, if it may be registered at `now`.
    pub(crate) fn instant(
        &self,
        asked: RequestedTime,
        earliest_allowed: EarliestAllowed,
        now: Timestamp,
    ) -> Result<Timestamp, Invalid> {
        let min_delay = match earliest_allowed {
            EarliestAllowed::MinDelay => self.horizon.min_delay,
            EarliestAllowed::Now => Span::ZERO,
            EarliestAllowed::Any => match asked {
                RequestedTime::At(instant) if instant < Timestamp::from_micros(0) => {
                    return Err(Invalid::new("execute_at", "must not lie before 1970"));
                }
                RequestedTime::At(instant) if instant < now => return Ok(instant),
                _ => Span::ZERO,
            },
        };
        asked.instant(now, &Horizon { min_delay, ..self.horizon })
    }

    pub(crate) fn check(&self, namespace: &Namespace, callback: &Callback) -> Result<(), Invalid> {
        match &callback.endpoint {
            Endpoint::Http(http) => (self.address)(&http.url),
            Endpoint::Nats(nats) => match &self.nats {
                Some(check) => check(namespace, &nats.topic),
                None => Err(Invalid::new("callback.type", "must be http: no NATS server is configured")),
            },
            // Only the command consumer makes them, for those who listen there.
            Endpoint::Event => Err(Invalid::new("callback.type", "must be http or nats")),
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("horizon", &self.horizon).field("nats", &self.nats.is_some()).finish_non_exhaustive()
    }
}
