use std::{fmt, time::Duration};

use crate::Invalid;

/// A length of time in whole microseconds, never negative.
///
/// Written as people write it (`90s`, `1h30m`, `250ms`) or as ISO 8601 (`PT15M`, `P1DT12H`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

const UNITS: [(&str, i64); 8] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", MINUTE), ("min", MINUTE), ("h", HOUR), ("d", DAY), ("w", 7 * DAY)];
const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: u32) -> Self {
        Self(micros as i64)
    }

    pub const fn from_millis(millis: u32) -> Self {
        Self(millis as i64 * 1_000)
    }

    pub const fn from_secs(secs: u32) -> Self {
        Self(secs as i64 * 1_000_000)
    }

    /// The span of `micros`, or zero when that is negative.
    pub const fn from_micros_clamped(micros: i64) -> Self {
        Self(if micros < 0 { 0 } else { micros })
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    pub const fn as_duration(self) -> Duration {
        Duration::from_micros(self.0.unsigned_abs())
    }

    /// Whole seconds, rounded up: a timer with half a second left has not expired.
    pub const fn as_secs_up(self) -> i64 {
        self.0 / 1_000_000 + (self.0 % 1_000_000 != 0) as i64
    }

    pub fn saturating_mul(self, factor: f64) -> Self {
        let product = self.0 as f64 * factor;
        // A float cast saturates, and turns NaN into zero.
        Self::from_micros_clamped(product as i64)
    }

    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let micros = match text.strip_prefix('P') {
            Some(iso) => parse_iso(iso),
            None => parse_plain(text),
        };
        micros.map(Self).ok_or_else(|| Invalid::new(field, "must be a duration such as 90s, 1h30m or PT15M"))
    }
}

fn parse_plain(text: &str) -> Option<i64> {
    parse_terms(text, &mut |unit| UNITS.iter().find(|(name, _)| *name == unit).map(|(_, micros)| *micros))
}

/// Parses what follows the `P`. Months and years have no fixed length, so they are refused.
fn parse_iso(text: &str) -> Option<i64> {
    let (days, clock) = match text.split_once('T') {
        Some((days, clock)) => (days, Some(clock)),
        None => (text, None),
    };
    let days_unit = &mut in_order(&[("W", 7 * DAY), ("D", DAY)]);
    let clock_unit = &mut in_order(&[("H", HOUR), ("M", MINUTE), ("S", 1_000_000)]);
    match (days, clock) {
        ("", Some(clock)) => parse_terms(clock, clock_unit),
        (days, None) => parse_terms(days, days_unit),
        (days, Some(clock)) => parse_terms(days, days_unit)?.checked_add(parse_terms(clock, clock_unit)?),
    }
}

/// A lookup that accepts each unit once, and only in the order of the list.
fn in_order<'a>(units: &'a [(&'a str, i64)]) -> impl FnMut(&str) -> Option<i64> + 'a {
    let mut rest = units;
    move |unit| {
        let at = rest.iter().position(|(name, _)| *name == unit)?;
        let micros = rest[at].1;
        rest = &rest[at + 1..];
        Some(micros)
    }
}

/// Parses one or more numbers with their units, and adds them up: `1h30m`.
fn parse_terms(mut text: &str, unit_micros: &mut dyn FnMut(&str) -> Option<i64>) -> Option<i64> {
    let mut total: i64 = 0;
    loop {
        let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(number_ends);
        let unit_ends = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit_ends);
        total = total.checked_add(scale(number, unit_micros(unit)?)?)?;
        if rest.is_empty() {
            return Some(total);
        }
        text = rest;
    }
}

/// `number` (digits, perhaps with a fraction of up to nine) times `unit`, computed without floats.
fn scale(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let denominator = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: i64 = fraction.parse().ok()?;
    let part = i64::try_from(i128::from(fraction) * i128::from(unit) / denominator).ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

/// The shortest plain form that parses to the same span.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, micros) in [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1_000_000), ("ms", 1_000), ("us", 1)] {
            if rest >= micros {
                write!(f, "{}{unit}", rest / micros)?;
                rest %= micros;
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_both_notations() {
        for (text, micros) in [
            ("90s", 90_000_000),
            ("1h30m", 5_400_000_000),
            ("1h30min", 5_400_000_000),
            ("250ms", 250_000),
            ("1.5h", 5_400_000_000),
            ("0.000001s", 1),
            ("2d", 2 * DAY),
            ("1w", 7 * DAY),
            ("PT15M", 900_000_000),
            ("PT1H30M", 5_400_000_000),
            ("P1DT12H", 36 * HOUR),
            ("P2W", 14 * DAY),
            ("PT0.5S", 500_000),
            ("0s", 0),
        ] {
            assert_eq!(Span::parse("delay", text).map(Span::as_micros), Ok(micros), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "s",
            "90",
            "-5s",
            "1h30",
            "1 h",
            "1y",
            "P",
            "PT",
            "P1Y",
            "P1M",
            "PT1M1H",
            "P1H",
            "PT1D",
            "1.s",
            ".5s",
            "1.2.3s",
            "99999999999999999999s",
            "9223372036854775807s",
            "1S",
            "٣s",
            "1h\0",
        ] {
            assert_eq!(
                Span::parse("delay", text).map_err(|e| e.to_string()),
                Err("delay must be a duration such as 90s, 1h30m or PT15M".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_written_span_reads_back_as_itself() {
        for micros in [0, 1, 999, 1_000, 1_500_000, 90_000_000, DAY + 1, 36 * HOUR, i64::MAX] {
            let span = Span(micros);
            assert_eq!(Span::parse("delay", &span.to_string()), Ok(span), "{span}");
        }
    }

    #[test]
    fn a_started_second_counts() {
        assert_eq!(Span::from_millis(1).as_secs_up(), 1);
        assert_eq!(Span::from_secs(5).as_secs_up(), 5);
        assert_eq!(Span::ZERO.as_secs_up(), 0);
    }
}
