use crate::{Invalid, Span, Timestamp, limits};

/// The time that the client asked for: an instant, or a delay. It is stored as asked, so that a repeated request can be told
/// from a different one. Not `Copy`, because a kind of time may have a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedTime {
    At(Timestamp),
    After(Span),
}

impl RequestedTime {
    /// The instant that is meant, if it may be registered at `now`. Without a minimum, an instant that has just passed becomes
    /// `now`.
    pub fn instant(&self, now: Timestamp, horizon: &Horizon) -> Result<Timestamp, Invalid> {
        let (field, instant) = match self {
            Self::At(instant) => ("execute_at", *instant),
            Self::After(span) => {
                let instant =
                    now.checked_add(*span).ok_or_else(|| Invalid::new("delay", "must not lead beyond the year 9999"))?;
                ("delay", instant)
            }
        };
        // `>=`, because without a minimum "now" was still the future when the client sent the request.
        if instant < now.saturating_add(horizon.min_delay) {
            return match self {
                Self::At(_) if horizon.min_delay == Span::ZERO && now.since(instant) <= limits::PAST_COUNTS_AS_NOW => Ok(now),
                Self::At(_) => Err(Invalid::new(field, "must be in the future")),
                Self::After(_) => Err(Invalid::new(field, format!("must be at least {}", horizon.min_delay))),
            };
        }
        if let Some(max) = horizon.max_horizon
            && instant > now.saturating_add(max)
        {
            return Err(Invalid::new(field, format!("must not be more than {max} ahead")));
        }
        Ok(instant)
    }

    pub const fn to_stored(&self) -> StoredTime {
        let number = match self {
            Self::At(instant) => instant.as_micros(),
            Self::After(span) => !span.as_micros(),
        };
        StoredTime { number, text: None }
    }

    pub fn from_stored(stored: &StoredTime) -> Result<Self, Invalid> {
        match stored {
            StoredTime { text: Some(_), .. } => Err(Invalid::new("asked", "is of a kind that this program does not know")),
            StoredTime { number, text: None } if *number < 0 => Ok(Self::After(Span::from_micros_clamped(!number))),
            StoredTime { number, text: None } => Ok(Self::At(Timestamp::from_micros(*number))),
        }
    }
}

/// A [`RequestedTime`] as it is stored: a number in a column of its own, and a text for a kind that is more than a number, which stands
/// beside the [`Options`](crate::Options). No kind has a text yet; a timer that has one is of a later version and is refused, not
/// misread.
///
/// An instant is its microseconds, a delay their complement, which is negative even for no delay at all. Instants before 1970 are past
/// and never get this far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTime {
    pub number: i64,
    pub text: Option<String>,
}

/// How near and how far ahead a due time may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    pub min_delay: Span,
    pub max_horizon: Option<Span>,
}

/// The short form: hours, minutes and seconds from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Countdown {
    pub hours: u32,
    pub minutes: u32,
    pub seconds: u32,
}

impl Countdown {
    pub fn span(self) -> Result<Span, Invalid> {
        let seconds = i64::from(self.hours) * 3600 + i64::from(self.minutes) * 60 + i64::from(self.seconds);
        if seconds < 1 {
            return Err(Invalid::new("hours, minutes and seconds", "must together be at least 1 second"));
        }
        Ok(Span::from_micros_clamped(seconds.saturating_mul(1_000_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn at(seconds: i64) -> RequestedTime {
        RequestedTime::At(Timestamp::from_micros(NOW.as_micros() + seconds * 1_000_000))
    }

    #[test]
    fn instants_must_lie_between_the_minimum_and_the_horizon() {
        let horizon = Horizon { min_delay: Span::from_secs(5), max_horizon: Some(Span::from_secs(60)) };
        for (asked, answer) in [
            (at(5), Ok(5)),
            (at(60), Ok(60)),
            (RequestedTime::After(Span::from_secs(5)), Ok(5)),
            (at(4), Err("execute_at must be in the future")),
            (at(-1), Err("execute_at must be in the future")),
            (at(61), Err("execute_at must not be more than 1m ahead")),
            (RequestedTime::After(Span::from_secs(4)), Err("delay must be at least 5s")),
            (RequestedTime::After(Span::from_secs(61)), Err("delay must not be more than 1m ahead")),
            (RequestedTime::After(Span::from_micros_clamped(i64::MAX)), Err("delay must not lead beyond the year 9999")),
        ] {
            let got = asked.instant(NOW, &horizon).map(|instant| instant.since(NOW).as_secs_up()).map_err(|e| e.to_string());
            assert_eq!(got, answer.map_err(str::to_owned), "{asked:?}");
        }
    }

    #[test]
    fn without_a_horizon_the_end_of_time_is_allowed() {
        let horizon = Horizon { min_delay: Span::ZERO, max_horizon: None };
        assert_eq!(RequestedTime::At(Timestamp::MAX).instant(NOW, &horizon), Ok(Timestamp::MAX));
        assert_eq!(RequestedTime::At(NOW).instant(NOW, &horizon), Ok(NOW));
    }

    #[test]
    fn without_a_minimum_what_has_just_passed_counts_as_now() {
        let future = "execute_at must be in the future";
        for (seconds, min_delay, answer) in
            [(-1, 0, Ok(NOW)), (-60, 0, Ok(NOW)), (-61, 0, Err(future)), (-1, 5, Err(future)), (0, 5, Err(future))]
        {
            let horizon = Horizon { min_delay: Span::from_secs(min_delay), max_horizon: None };
            let got = at(seconds).instant(NOW, &horizon).map_err(|e| e.to_string());
            assert_eq!(got, answer.map_err(str::to_owned), "{seconds} {min_delay}");
        }
    }

    #[test]
    fn what_was_asked_survives_its_stored_form() {
        let longest = Span::from_micros_clamped(i64::MAX);
        for asked in
            [at(0), RequestedTime::After(Span::from_secs(90)), RequestedTime::After(Span::ZERO), RequestedTime::After(longest)]
        {
            assert_eq!(RequestedTime::from_stored(&asked.to_stored()), Ok(asked));
        }
    }

    #[test]
    fn a_kind_of_a_later_version_is_refused() {
        let later = StoredTime { number: 0, text: Some("0 9 * * MON".to_owned()) };
        let refusal = RequestedTime::from_stored(&later).unwrap_err().to_string();
        assert_eq!(refusal, "asked is of a kind that this program does not know");
    }

    #[test]
    fn a_countdown_is_at_least_a_second() {
        let span = |hours, minutes, seconds| {
            Countdown { hours, minutes, seconds }.span().map(Span::as_secs_up).map_err(|e| e.to_string())
        };
        assert_eq!(span(1, 30, 0), Ok(5400));
        assert_eq!(span(0, 0, 1), Ok(1));
        assert_eq!(span(0, 0, 0), Err("hours, minutes and seconds must together be at least 1 second".to_owned()));
        assert!(span(u32::MAX, u32::MAX, u32::MAX).is_ok());
    }
}
