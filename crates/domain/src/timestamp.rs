use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::{Invalid, Span};

/// An instant in UTC, in whole microseconds since 1970. Finer input is cut off, never rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The last microsecond that RFC 3339 can write: the end of the year 9999.
const MICROS_MAX: i64 = 253_402_300_799_999_999;
/// The first one: the start of the year 0.
const MICROS_MIN: i64 = -62_167_219_200_000_000;

impl Timestamp {
    pub const MAX: Self = Self(MICROS_MAX);
    pub const MIN: Self = Self(MICROS_MIN);

    /// The instant at `micros`, brought into the range that can be written as RFC 3339.
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

    /// Reads RFC 3339 with any offset.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let instant = DateTime::parse_from_rfc3339(text)
            .map_err(|_| Invalid::new(field, "must be an RFC 3339 date and time such as 2030-01-31T12:00:00Z"))?;
        let micros = instant.timestamp_micros();
        if !(MICROS_MIN..=MICROS_MAX).contains(&micros) {
            return Err(Invalid::new(field, "must lie between the years 0000 and 9999"));
        }
        Ok(Self(micros))
    }

    /// The whole minute that holds this instant, counted from 1970: the coarse key of the stores.
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

    /// How long it is from `earlier` to here; nothing when `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_micros_clamped(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp_micros(self.0) {
            Some(instant) => f.write_str(&instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => write!(f, "{}us", self.0),
        }
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
