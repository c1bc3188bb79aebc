use domain::{Invalid, Span, Timestamp};

/// The most buckets of one answer: the minutes of a day.
const BUCKETS_MAX: i64 = 1_440;

const BUCKETS_DEFAULT: i64 = 60;
const MINUTE_MICROS: i64 = 60_000_000;

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
    /// What is asked for; sixty buckets from now where nothing is said.
    pub(super) fn ahead(request: &PeriodRequest, now: Timestamp) -> Result<Self, Invalid> {
        let step = step(request)?;
        let from = floor(request.from.unwrap_or(now).minute(), step);
        Self::checked(from, request.to.map_or(from + BUCKETS_DEFAULT * step, |to| ceiling(to, step)), step)
    }

    /// What is asked for; the last sixty buckets where nothing is said, with the one that is not over.
    pub(super) fn behind(request: &PeriodRequest, now: Timestamp) -> Result<Self, Invalid> {
        let step = step(request)?;
        let to = request.to.map_or(floor(now.minute(), step) + step, |to| ceiling(to, step));
        Self::checked(request.from.map_or(to - BUCKETS_DEFAULT * step, |from| floor(from.minute(), step)), to, step)
    }

    fn checked(from: i64, to: i64, step: i64) -> Result<Self, Invalid> {
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
    if micros < MINUTE_MICROS || micros % MINUTE_MICROS != 0 {
        return Err(Invalid::new("step", "must be a number of whole minutes, 1m at least"));
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
            ("", "", "59s", "step must be a number of whole minutes, 1m at least"),
            ("", "", "90s", "step must be a number of whole minutes, 1m at least"),
            ("", "", "0s", "step must be a number of whole minutes, 1m at least"),
        ] {
            for period in [StatsPeriod::ahead, StatsPeriod::behind] {
                assert_eq!(period(&request(from, to, step), now).unwrap_err().to_string(), complaint);
            }
        }
        assert!(StatsPeriod::ahead(&request("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z", ""), now).is_ok());
    }
}
