use std::{fmt, sync::Arc};

use domain::{Callback, Horizon, Invalid, KindSet, Namespace, Options, RequestedTime, Span, Timestamp, limits};

/// Refuses callbacks of a namespace that would never be sent: to an address that is closed to them, to a subject of the platform. As
/// far as that can be told without asking a server.
pub type CallbackCheck = Arc<dyn Fn(&Namespace, &Callback) -> Result<(), Invalid> + Send + Sync>;

/// What this installation allows.
#[derive(Clone)]
pub struct Rules {
    pub horizon: Horizon,
    /// The kinds of callbacks that this installation can send.
    pub callbacks: KindSet,
    pub callback_check: CallbackCheck,
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
        asked: &RequestedTime,
        earliest_allowed: EarliestAllowed,
        now: Timestamp,
    ) -> Result<Timestamp, Invalid> {
        let min_delay = match earliest_allowed {
            EarliestAllowed::MinDelay => self.horizon.min_delay,
            EarliestAllowed::Now => Span::ZERO,
            EarliestAllowed::Any => match asked {
                RequestedTime::At(instant) if *instant < Timestamp::from_micros(0) => {
                    return Err(Invalid::new("execute_at", "must not lie before 1970"));
                }
                RequestedTime::At(instant) if *instant < now => return Ok(*instant),
                _ => Span::ZERO,
            },
        };
        asked.instant(now, &Horizon { min_delay, ..self.horizon })
    }

    /// The callbacks that follow the end of a timer keep the same rules as its own.
    pub(crate) fn check_follow_ups(&self, namespace: &Namespace, options: &Options) -> Result<(), Invalid> {
        for (name, callback) in [("on_success", &options.on_success), ("on_failure", &options.on_failure)] {
            if let Some(callback) = callback {
                self.check_follow_up(namespace, name, callback)?;
            }
        }
        Ok(())
    }

    fn check_follow_up(&self, namespace: &Namespace, name: &str, callback: &Callback) -> Result<(), Invalid> {
        self.check(namespace, callback).map_err(|invalid| invalid.in_place_of("callback", name))?;
        if callback.to_json().len() > limits::FOLLOW_UP_BYTES_MAX {
            return Err(Invalid::new(name, format!("must not be longer than {} bytes", limits::FOLLOW_UP_BYTES_MAX)));
        }
        Ok(())
    }

    pub(crate) fn check(&self, namespace: &Namespace, callback: &Callback) -> Result<(), Invalid> {
        let kind = callback.endpoint.kind();
        if !KindSet::REQUESTABLE.contains(kind) {
            return Err(Invalid::new("callback.type", format!("must be {}", KindSet::REQUESTABLE)));
        }
        if !self.callbacks.contains(kind) {
            let choice = self.callbacks.intersection(KindSet::REQUESTABLE);
            let missing = kind.backend().map(|backend| format!(": no {} is configured", backend.name)).unwrap_or_default();
            return Err(Invalid::new("callback.type", format!("must be {choice}{missing}")));
        }
        (self.callback_check)(namespace, callback)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("horizon", &self.horizon).field("callbacks", &self.callbacks).finish_non_exhaustive()
    }
}
