use domain::{Invalid, Span, Timestamp};

/// The most buckets of one answer: the minutes of a day.
const BUCKETS_MAX: i64 = 1_440;

const BUCKETS_DEFAULT: i64 = 60;
const MINUTE_MICROS: i64 = 60_000_000;
const STEP_MICROS_MAX: i64 = 366 * 24 * 60 * MINUTE_MICROS;

/// Which time is asked for, in the words of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeriodRequest {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub step: Option<Span>,
}

/// A time in buckets that begin at whole multiples of their length, counted from 1970. All in minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsPeriod {
    pub from: i64,
    pub to: i64,
    pub step: i64,
}

impl StatsPeriod {
    /// What is asked for; sixty buckets from now where neither end is named.
    pub(super) fn ahead(request: &PeriodRequest, now: Timestamp) -> Result<Self, Invalid> {
        let step = step(request)?;
        Self::with_default(request, step, floor(now.minute(), step))
    }

    /// What is asked for; the last sixty buckets where neither end is named, with the one that is not over.
    pub(super) fn behind(request: &PeriodRequest, now: Timestamp) -> Result<Self, Invalid> {
        let step = step(request)?;
        Self::with_default(request, step, floor(now.minute(), step) + step - BUCKETS_DEFAULT * step)
    }

    /// Where one end is named, the other is sixty buckets away.
    fn with_default(request: &PeriodRequest, step: i64, from_default: i64) -> Result<Self, Invalid> {
        let whole = BUCKETS_DEFAULT * step;
        let named = (request.from.map(|from| floor(from.minute(), step)), request.to.map(|to| ceiling(to, step)));
        let (from, to) = match named {
            (Some(from), Some(to)) => (from, to),
            (Some(from), None) => (from, from + whole),
            (None, Some(to)) => (to - whole, to),
            (None, None) => (from_default, from_default + whole),
        };
        if to <= from {
            return Err(Invalid::new("to", "must be later than from"));
        }
        if (to - from) / step > BUCKETS_MAX {
            return Err(Invalid::new("step", format!("must be longer: there would be more than {BUCKETS_MAX} buckets")));
        }
        Ok(Self { from, to, step })
    }

    /// When each bucket begins.
    pub(super) fn starts(self) -> impl Iterator<Item = Timestamp> {
        (0..(self.to - self.from) / self.step).map(move |bucket| start_of(self.from + bucket * self.step))
    }

    /// The bucket of a minute, if it is in the period.
    pub(super) fn bucket(self, minute: i64) -> Option<usize> {
        (self.from..self.to).contains(&minute).then(|| usize::try_from((minute - self.from) / self.step).ok()).flatten()
    }

    pub fn starts_at(self) -> Timestamp {
        start_of(self.from)
    }

    pub fn ends_at(self) -> Timestamp {
        start_of(self.to)
    }

    pub const fn step_seconds(self) -> i64 {
        self.step * 60
    }
}

const fn start_of(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute.saturating_mul(MINUTE_MICROS))
}

fn step(request: &PeriodRequest) -> Result<i64, Invalid> {
    let micros = request.step.map_or(MINUTE_MICROS, Span::as_micros);
    if !(MINUTE_MICROS..=STEP_MICROS_MAX).contains(&micros) || micros % MINUTE_MICROS != 0 {
        return Err(Invalid::new("step", "must be a number of whole minutes from 1m to 366d"));
    }
    Ok(micros / MINUTE_MICROS)
}

const fn floor(minute: i64, step: i64) -> i64 {
    minute.div_euclid(step) * step
}

/// The first bucket that begins at that time or later.
const fn ceiling(at: Timestamp, step: i64) -> i64 {
    let minute = at.as_micros().div_euclid(MINUTE_MICROS) + (at.as_micros().rem_euclid(MINUTE_MICROS) != 0) as i64;
    minute.div_euclid(step) * step + if minute.rem_euclid(step) == 0 { 0 } else { step }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse("at", text).unwrap()
    }

    fn request(from: &str, to: &str, step: &str) -> PeriodRequest {
        let time = |text: &str| (!text.is_empty()).then(|| at(text));
        PeriodRequest { from: time(from), to: time(to), step: (!step.is_empty()).then(|| Span::parse("step", step).unwrap()) }
    }

    #[test]
    fn buckets_begin_at_multiples_of_their_length_and_hold_all_that_is_asked_for() {
        let now = at("2030-01-01T10:30:30Z");
        for (from, to, step, ahead, behind) in [
            ("", "", "", ("10:30", "11:30", 60), ("09:31", "10:31", 60)),
            ("", "", "5m", ("10:30", "15:30", 300), ("05:35", "10:35", 300)),
            ("2030-01-01T10:07:00Z", "2030-01-01T10:20:00.5Z", "5m", ("10:05", "10:25", 300), ("10:05", "10:25", 300)),
            ("2030-01-01T10:05:00Z", "2030-01-01T10:20:00Z", "5m", ("10:05", "10:20", 300), ("10:05", "10:20", 300)),
            ("2030-01-01T10:07:00Z", "", "", ("10:07", "11:07", 60), ("10:07", "11:07", 60)),
            ("", "2030-01-01T10:07:00Z", "", ("09:07", "10:07", 60), ("09:07", "10:07", 60)),
            ("2030-01-01T10:59:59Z", "2030-01-01T11:00:01Z", "PT1M", ("10:59", "11:01", 60), ("10:59", "11:01", 60)),
        ] {
            let request = request(from, to, step);
            let met = |period: StatsPeriod| {
                let clock = |at: Timestamp| at.to_string()[11..16].to_owned();
                (clock(period.starts_at()), clock(period.ends_at()), period.step_seconds())
            };
            let wanted = |(from, to, step): (&str, &str, i64)| (from.to_owned(), to.to_owned(), step);
            assert_eq!(met(StatsPeriod::ahead(&request, now).unwrap()), wanted(ahead), "{request:?}");
            assert_eq!(met(StatsPeriod::behind(&request, now).unwrap()), wanted(behind), "{request:?}");
        }
    }

    #[test]
    fn a_period_has_an_end_and_not_too_many_buckets() {
        let now = at("2030-01-01T10:30:30Z");
        for (from, to, step, complaint) in [
            ("2030-01-01T10:00:00Z", "2030-01-01T10:00:00Z", "", "to must be later than from"),
            ("2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z", "", "to must be later than from"),
            ("2030-01-01T00:00:00Z", "2030-01-02T00:01:00Z", "", "step must be longer: there would be more than 1440 buckets"),
            ("0000-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "1h", "step must be longer: there would be more than 1440 buckets"),
            ("", "", "59s", "step must be a number of whole minutes from 1m to 366d"),
            ("", "", "90s", "step must be a number of whole minutes from 1m to 366d"),
            ("", "", "0s", "step must be a number of whole minutes from 1m to 366d"),
            ("", "", "367d", "step must be a number of whole minutes from 1m to 366d"),
        ] {
            for period in [StatsPeriod::ahead, StatsPeriod::behind] {
                assert_eq!(period(&request(from, to, step), now).unwrap_err().to_string(), complaint);
            }
        }
        assert!(StatsPeriod::ahead(&request("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z", ""), now).is_ok());
        assert!(StatsPeriod::ahead(&request("", "0000-01-01T00:00:00Z", "366d"), now).is_ok());
    }
}
