//! Numbers, times and lengths of time as people read them.

use domain::{Span, Status, Timestamp};
use maud::{Markup, html};

use crate::visitor::Visitor;

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Writes a number with a comma after each three digits.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that may be an estimate, rounded to what such a one is worth.
pub(crate) fn count(timers: u64, is_estimate: bool) -> String {
    if !is_estimate {
        return number(timers);
    }
    let magnitude = 10_u64.pow(timers.checked_ilog10().unwrap_or(0).saturating_sub(2));
    format!("about {}", number(timers / magnitude * magnitude))
}

/// `1 timer`, `2 timers`.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { several })
}

/// In one or two units: `41 ms`, `2.4 s`, `35 min 58 s`, `2 d 3 h`.
pub(crate) fn span(span: Span) -> String {
    const SECOND: i64 = 1_000_000;
    let micros = span.as_micros();
    let tenths = |unit: i64, name: &str| {
        let tenths = micros / (unit / 10);
        if tenths % 10 == 0 || tenths >= 100 {
            format!("{} {name}", tenths / 10)
        } else {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    };
    let two = |large: i64, name: &str, small: i64, rest_name: &str| match micros % large / small {
        0 => format!("{} {name}", micros / large),
        rest => format!("{} {name} {rest} {rest_name}", micros / large),
    };
    match micros {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{micros} µs"),
        1_000..SECOND => tenths(1_000, "ms"),
        SECOND..60_000_000 => tenths(SECOND, "s"),
        60_000_000..3_600_000_000 => two(60 * SECOND, "min", SECOND, "s"),
        3_600_000_000..86_400_000_000 => two(3_600 * SECOND, "h", 60 * SECOND, "min"),
        _ => two(86_400 * SECOND, "d", 3_600 * SECOND, "h"),
    }
}

pub(crate) fn micros(micros: u64) -> String {
    span(Span::from_micros_clamped(i64::try_from(micros).unwrap_or(i64::MAX)))
}

/// `in 5 s`, or `5 s ago`. Whole seconds: what is nearer is now.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let whole = |span: Span| Span::from_micros_clamped(span.as_micros() / 1_000_000 * 1_000_000);
    let (ahead, behind) = (whole(at.since(now)), whole(now.since(at)));
    match (ahead, behind) {
        (Span::ZERO, Span::ZERO) => "now".to_owned(),
        (ahead, Span::ZERO) => format!("in {}", span(ahead)),
        (_, behind) => format!("{} ago", span(behind)),
    }
}

/// `16 Nov 2026 10:30:00` in UTC, with milliseconds where they are wanted.
pub(crate) fn instant(at: Timestamp, with_millis: bool) -> String {
    let text = at.to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1))).unwrap_or(&"");
    let day = part(8, 10).trim_start_matches('0');
    let millis = match at.as_micros().rem_euclid(1_000_000) / 1_000 {
        millis if with_millis => format!(".{millis:03}"),
        _ => String::new(),
    };
    format!("{day} {month} {} {}{millis}", part(0, 4), part(11, 19))
}

/// The day of the week in UTC.
pub(crate) fn weekday(at: Timestamp) -> &'static str {
    // The epoch was a Thursday.
    let day = at.as_micros().div_euclid(86_400_000_000).rem_euclid(7);
    usize::try_from(day).ok().and_then(|day| WEEKDAYS.get(day)).copied().unwrap_or_default()
}

/// The time of the day in UTC, without seconds where there are none.
pub(crate) fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    let end = if at.as_micros().rem_euclid(60_000_000) < 1_000_000 { 16 } else { 19 };
    text.get(11..end).unwrap_or_default().to_owned()
}

/// An instant as it is shown first: in the zone of the viewer, if it has a name. Viewers share what is sent live, so that it is in UTC,
/// which the script turns.
fn shown(visitor: &Visitor, at: Timestamp, with_millis: bool) -> String {
    let zone = visitor.preferences.known_zone.as_ref().filter(|_| !visitor.is_live);
    instant(zone.map_or(at, |zone| zone.wall_clock(at)), with_millis)
}

/// What a pointer over an instant tells: how far away it is, and its exact text. What is sent live is not counted here; the script does.
fn told(visitor: &Visitor, at: Timestamp) -> String {
    if visitor.is_live { at.to_string() } else { format!("{} · {at}", relative(at, visitor.now())) }
}

/// An instant as an element, with how far away it is in its title. The year is left out where it is the present one.
pub(crate) fn time(visitor: &Visitor, at: Timestamp) -> Markup {
    let (text, year) = (shown(visitor, at, false), visitor.now().to_string()[..4].to_owned());
    html! { time datetime=(at) title=(told(visitor, at)) data-time="short" { (text.replacen(&format!(" {year} "), " ", 1)) } }
}

pub(crate) fn exact_time(visitor: &Visitor, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(told(visitor, at)) data-time="millis" { (shown(visitor, at, true)) } }
}

/// How far away an instant is, with the instant in its title: counted by the script from then on.
pub(crate) fn distance(visitor: &Visitor, at: Timestamp) -> Markup {
    let title = if visitor.is_live { at.to_string() } else { format!("{} · {at}", shown(visitor, at, true)) };
    html! { time datetime=(at) title=(title) data-distance="" { @if !visitor.is_live { (relative(at, visitor.now())) } } }
}

/// A status: a word on a tint, the same everywhere.
pub(crate) fn status(status: Status) -> Markup {
    html! { span class={ "status " (status.as_str()) } { (status.as_str()) } }
}

/// A text as a segment of a path.
pub(crate) fn in_path(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Cuts a text to at most `chars_max` characters, and marks where it was cut.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_estimates_say_so() {
        for (given, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_204_118, "1,204,118")] {
            assert_eq!(number(given), text);
        }
        assert_eq!(count(1_204_118, true), "about 1,200,000");
        assert_eq!((count(0, true).as_str(), count(12, false).as_str()), ("about 0", "12"));
    }

    #[test]
    fn lengths_of_time_have_one_or_two_units() {
        for (text, expected) in [
            ("0s", "0 s"),
            ("12us", "12 µs"),
            ("41ms", "41 ms"),
            ("1500us", "1.5 ms"),
            ("2400ms", "2.4 s"),
            ("59s", "59 s"),
            ("35m58s", "35 min 58 s"),
            ("2h", "2 h"),
            ("2h3m9s", "2 h 3 min"),
            ("51h", "2 d 3 h"),
        ] {
            assert_eq!(span(Span::parse("span", text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn an_instant_is_near_or_far() {
        let now = Timestamp::parse("now", "2026-11-06T10:30:00.25Z").unwrap();
        for (seconds, expected) in [(0, "now"), (5, "in 5 s"), (3_700, "in 1 h 1 min")] {
            assert_eq!(relative(now.saturating_add(Span::from_secs(seconds)), now), expected);
        }
        assert_eq!(relative(now.saturating_sub(Span::from_secs(65)), now), "1 min 5 s ago");
        assert_eq!((weekday(now), clock(now).as_str()), ("Fri", "10:30"));
        assert_eq!(weekday(Timestamp::parse("at", "1969-12-31T23:59:59Z").unwrap()), "Wed");
        assert_eq!(instant(now, true), "6 Nov 2026 10:30:00.250");
        assert_eq!(instant(now, false), "6 Nov 2026 10:30:00");
    }

    #[test]
    fn a_segment_of_a_path_is_escaped() {
        assert_eq!(in_path("api.shop:443"), "api.shop:443");
        assert_eq!(in_path("a/b c?ü"), "a%2Fb%20c%3F%C3%BC");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!((cut("äöü", 3).as_str(), cut("äöü", 2).as_str()), ("äöü", "äö…"));
    }
}
