//! Durations as this dialect writes them.

use domain::Span;
use serde_json::Number;

/// A duration with no unit larger than hours: a client that wrote `24h` reads `24h`, and not every language knows days.
pub(super) fn written(span: Span) -> String {
    const HOUR_MICROS: i64 = 3_600_000_000;
    let hours = span.as_micros() / HOUR_MICROS;
    let rest = Span::from_micros_clamped(span.as_micros() % HOUR_MICROS);
    match (hours, rest) {
        (0, rest) => rest.to_string(),
        (hours, Span::ZERO) => format!("{hours}h"),
        (hours, rest) => format!("{hours}h{rest}"),
    }
}

/// The same as a number of seconds.
pub(super) fn seconds(span: Span) -> Option<Number> {
    match span.as_micros() {
        micros if micros % 1_000_000 == 0 => Some((micros / 1_000_000).into()),
        micros => Number::from_f64(micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_without_days_and_read_back_as_themselves() {
        for (text, expected) in
            [("24h", "24h"), ("1d", "24h"), ("2w1h30m", "337h30m"), ("90s", "1m30s"), ("250ms", "250ms"), ("0s", "0s")]
        {
            let span = Span::parse("text", text).unwrap();
            assert_eq!(written(span), expected);
            assert_eq!(Span::parse("text", expected), Ok(span));
        }
        assert_eq!(seconds(Span::from_secs(30)).unwrap().to_string(), "30");
        assert_eq!(seconds(Span::from_millis(250)).unwrap().to_string(), "0.25");
    }
}
