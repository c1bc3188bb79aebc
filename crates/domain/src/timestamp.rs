use std::fmt;

use chrono::DateTime;

use crate::{Invalid, Span};

/// An instant in UTC, in whole microseconds since 1970. Finer input is truncated, never rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The last microsecond that RFC 3339 can express: the end of the year 9999.
const MICROS_MAX: i64 = 253_402_300_799_999_999;
/// The first one: the start of the year 0.
const MICROS_MIN: i64 = -62_167_219_200_000_000;

impl Timestamp {
    pub const MAX: Self = Self(MICROS_MAX);
    pub const MIN: Self = Self(MICROS_MIN);

    /// The instant at `micros`, clamped to the range of RFC 3339.
    pub const fn from_micros(micros: i64) -> Self {
        if micros > MICROS_MAX {
            Self::MAX
        } else if micros < MICROS_MIN {
            Self::MIN
        } else {
            Self(micros)
        }
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339 with any offset.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let instant = DateTime::parse_from_rfc3339(text)
            .map_err(|_| Invalid::new(field, "must be an RFC 3339 date and time such as 2030-01-31T12:00:00Z"))?;
        let micros = instant.timestamp_micros();
        if !(MICROS_MIN..=MICROS_MAX).contains(&micros) {
            return Err(Invalid::new(field, "must lie between the years 0000 and 9999"));
        }
        Ok(Self(micros))
    }

    /// The whole minute of this instant, counted from 1970: the coarse key of the stores.
    pub const fn minute(self) -> i64 {
        self.0.div_euclid(60_000_000)
    }

    /// `None` when the sum lies beyond the year 9999.
    pub fn checked_add(self, span: Span) -> Option<Self> {
        self.0.checked_add(span.as_micros()).filter(|micros| *micros <= MICROS_MAX).map(Self)
    }

    pub const fn saturating_add(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_add(span.as_micros()))
    }

    pub const fn saturating_sub(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_sub(span.as_micros()))
    }

    /// How long it is from `earlier` to this instant; zero when `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_micros_clamped(self.0.saturating_sub(earlier.0))
    }
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
const TEMPLATE: [u8; 27] = *b"0000-00-00T00:00:00.000000Z";

impl Timestamp {
    /// The instant in RFC 3339, with as many groups of three decimals as it needs. Every answer carries several, so it is
    /// formatted in place, without an allocation.
    fn text(self, template: &mut [u8; 27]) -> &str {
        let (year, month, day) = date(self.0.div_euclid(DAY));
        let micros = self.0.rem_euclid(DAY);
        let seconds = micros / SECOND;
        let fraction = micros % SECOND;
        for (place, number) in [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, seconds / 3600),
            (14..16, seconds / 60 % 60),
            (17..19, seconds % 60),
            (20..26, fraction),
        ] {
            write_digits(&mut template[place], number);
        }
        let end = match fraction {
            0 => 19,
            _ if fraction % 1000 == 0 => 23,
            _ => 26,
        };
        template[end] = b'Z';
        std::str::from_utf8(&template[..=end]).unwrap_or_default()
    }
}

fn write_digits(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The year, month and day of a day that is counted from 1970-01-01, in the proleptic Gregorian calendar.
const fn date(day: i64) -> (i64, i64, i64) {
    // Years are counted from the first of March, so that the leap day is the last of its year; 400 of them are an era of
    // 146,097 days, and day 0 of era 0 is 0000-03-01.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = year + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut TEMPLATE.clone()))
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut TEMPLATE.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_with_any_offset_and_written_in_utc() {
        for (text, written) in [
            ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z"),
            ("2030-01-31T12:00:00+02:00", "2030-01-31T10:00:00Z"),
            ("2030-01-31T00:30:00-23:59", "2030-02-01T00:29:00Z"),
            ("2030-01-31T12:00:00.5Z", "2030-01-31T12:00:00.500Z"),
            ("2030-01-31T12:00:00.123456Z", "2030-01-31T12:00:00.123456Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp::parse("execute_at", text).unwrap().to_string(), written, "{text}");
        }
    }

    #[test]
    fn every_day_is_written_as_the_calendar_has_it() {
        use chrono::{SecondsFormat, Utc};
        // An irregular step soon meets every day of the year and every hour of the day.
        let step = 13 * DAY + 7 * 3_600_000_000 + 61_001_001;
        let every = (MICROS_MIN..=MICROS_MAX).step_by(usize::try_from(step).unwrap());
        for micros in every.chain([MICROS_MIN, MICROS_MAX, -1, 0, 1, 951_782_400_000_000, 4_107_542_399_000_000]) {
            let known = DateTime::<Utc>::from_timestamp_micros(micros).unwrap().to_rfc3339_opts(SecondsFormat::AutoSi, true);
            assert_eq!(Timestamp::from_micros(micros).to_string(), known, "{micros}");
        }
    }

    #[test]
    fn what_is_finer_than_a_microsecond_is_cut_off() {
        let cut = Timestamp::parse("execute_at", "2030-01-31T12:00:00.9999999Z").unwrap();
        assert_eq!(cut.to_string(), "2030-01-31T12:00:00.999999Z");
    }

    #[test]
    fn other_texts_are_refused_with_the_field_and_the_rule() {
        for text in ["", "tomorrow", "2030-01-31", "2030-01-31T12:00:00", "2030-02-30T00:00:00Z", "9999-12-31T23:59:59-01:00"] {
            let complaint = Timestamp::parse("execute_at", text).unwrap_err();
            assert!(complaint.to_string().starts_with("execute_at must "), "{text}: {complaint}");
        }
    }

    #[test]
    fn minutes_before_1970_are_counted_downwards() {
        assert_eq!(Timestamp::from_micros(-1).minute(), -1);
        assert_eq!(Timestamp::from_micros(0).minute(), 0);
        assert_eq!(Timestamp::from_micros(60_000_000).minute(), 1);
    }

    #[test]
    fn sums_never_leave_the_range() {
        assert_eq!(Timestamp::MAX.checked_add(Span::from_micros(1)), None);
        assert_eq!(Timestamp::MAX.saturating_add(Span::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Span::ZERO);
    }
}
