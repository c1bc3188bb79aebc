//! Charts: SVG that is drawn here and takes its colours from the style sheet. The plot is stretched to the room that it has; its labels
//! stand around it as text, so that they have the same size in every window.

use domain::{DurationHistogram, Span, Timestamp};
use maud::{Markup, PreEscaped, html};

use crate::text::{self, micros};

/// The plot, in units of its own.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// How many lines of a linear scale are above its floor.
const LINES: u64 = 3;
/// A histogram of fewer bars would be a wall.
const DOUBLINGS_MIN: usize = 10;

/// One bar: how high it is, what it is called, and where it leads to, if anywhere.
pub(crate) struct Bar {
    pub(crate) value: u64,
    pub(crate) title: String,
    pub(crate) link: Option<String>,
}

/// Bars over time, with labels below at equal distances.
pub(crate) fn bars(name: &str, bars: &[Bar], labels: &[String]) -> Markup {
    let top = nice_ceiling(bars.iter().map(|bar| bar.value).max().unwrap_or(0));
    let step = WIDTH / bars.len().max(1) as f64;
    let drawn = html! {
        @for (at, bar) in bars.iter().enumerate() {
            @let high = HEIGHT * bar.value as f64 / top as f64;
            @let high = if bar.value > 0 { high.max(1.0) } else { 0.0 };
            @let x = step * at as f64;
            // The whole column can be pointed at.
            @let column = html! {
                rect.hit x=(px(x)) y="0" width=(px(step)) height=(px(HEIGHT)) { title { (bar.title) } }
                rect.bar-mark x=(px(x + step * 0.1)) y=(px(HEIGHT - high)) width=(px((step * 0.8).max(0.5))) height=(px(high)) {}
            };
            @if let Some(link) = &bar.link { a href=(link) aria-label=(bar.title) { (column) } } @else { (column) }
        }
    };
    // What can be followed must not stand in an image.
    let role = if bars.iter().any(|bar| bar.link.is_some()) { "group" } else { "img" };
    chart(name, role, &linear(top), labels, &drawn)
}

/// Lengths of time of calls, each bar twice as long as the one before. `did` is what calls did for that long.
pub(crate) fn histogram(name: &str, lengths: &DurationHistogram, did: &str) -> Markup {
    let doublings = lengths.doublings(DOUBLINGS_MIN);
    let drawn: Vec<Bar> = doublings
        .iter()
        .map(|(from, to, count)| Bar {
            value: *count,
            title: format!("{} {did} {} to {}", text::counted(*count, "call", "calls"), micros(*from), micros(*to)),
            link: None,
        })
        .collect();
    let ends = doublings.first().zip(doublings.last()).map(|((first, ..), (_, last, _))| (*first, *last));
    let middle = doublings.get(doublings.len() / 2).filter(|_| doublings.len() > 2 && doublings.len().is_multiple_of(2));
    let labels: Vec<String> = ends
        .map(|(first, last)| [Some(first), middle.map(|(from, ..)| *from), Some(last)])
        .into_iter()
        .flatten()
        .flatten()
        .map(micros)
        .collect();
    bars(name, &drawn, &labels)
}

/// A line: the class that draws it, and its values; there is a gap where there is none.
pub(crate) struct Line<'a> {
    pub(crate) class: &'a str,
    pub(crate) values: Vec<Option<f64>>,
}

/// Lines of lengths of time on a logarithmic scale, from a tenth of a millisecond to ten seconds, with a mark at one second.
pub(crate) fn lateness(name: &str, lines: &[Line<'_>], labels: &[String]) -> Markup {
    const DECADES: [&str; 6] = ["10 s", "1 s", "0.1 s", "10 ms", "1 ms", "0.1 ms"];
    let (lowest, highest) = (100.0_f64.log10(), 10_000_000.0_f64.log10());
    let y = |micros: f64| HEIGHT - HEIGHT * ((micros.max(1.0).log10() - lowest) / (highest - lowest)).clamp(0.0, 1.0);
    let drawn = html! {
        line.promise x1="0" x2=(WIDTH) y1=(px(y(1_000_000.0))) y2=(px(y(1_000_000.0))) {}
        @for line in lines { (polylines(line, &y)) }
    };
    chart(name, "img", &DECADES.map(str::to_owned), labels, &drawn)
}

/// Lines of counts on a linear scale.
pub(crate) fn counts(name: &str, lines: &[Line<'_>], labels: &[String]) -> Markup {
    let most = lines.iter().flat_map(|line| &line.values).flatten().fold(0.0_f64, |most, value| most.max(*value));
    let top = nice_ceiling(most as u64);
    let y = |value: f64| HEIGHT - HEIGHT * (value / top as f64).clamp(0.0, 1.0);
    let drawn = html! { @for line in lines { (polylines(line, &y)) } };
    chart(name, "img", &linear(top), labels, &drawn)
}

/// The plot with a line for each label of its scale, from the highest to the lowest, and the labels of the time below.
fn chart(name: &str, role: &str, scale: &[String], labels: &[String], drawn: &Markup) -> Markup {
    let last = scale.len().saturating_sub(1).max(1) as f64;
    html! {
        div.chart {
            div.scale aria-hidden="true" { @for label in scale { span { (label) } } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role=(role) aria-label=(name) {
                @for at in 0..scale.len() {
                    @let y = HEIGHT * at as f64 / last;
                    line.grid-line x1="0" x2=(WIDTH) y1=(px(y)) y2=(px(y)) {}
                }
                (drawn)
            }
            div.axis aria-hidden="true" { @for label in labels { span { (label) } } }
        }
    }
}

fn linear(top: u64) -> Vec<String> {
    (0..=LINES).rev().map(|line| short(top * line / LINES)).collect()
}

/// A moment in the life of something: on a line, with what is told of it below.
pub(crate) struct Moment {
    pub(crate) name: String,
    pub(crate) at: Timestamp,
    pub(crate) below: Markup,
    pub(crate) class: &'static str,
}

/// What happened one after the other, at equal distances, with how long it took from one to the next. The line is an image; what it says
/// is a list below, which in a narrow window stands alone.
pub(crate) fn life(moments: &[Moment]) -> Markup {
    const STEP: f64 = 100.0;
    let x = |at: usize| STEP * (at as f64 + 0.5);
    html! {
        div.life tabindex="0" role="region" aria-label="Life line" { div {
            svg viewBox={ "0 0 " (STEP * moments.len() as f64) " 20" } preserveAspectRatio="none" aria-hidden="true" {
                @for (at, pair) in moments.windows(2).enumerate() {
                    line.track.ahead[pair[1].class == "next"] x1=(px(x(at))) x2=(px(x(at + 1))) y1="10" y2="10" {}
                }
                @for (at, moment) in moments.iter().enumerate() { (dot(x(at), 10.0, moment.class, &moment.name)) }
            }
            ol {
                @for (at, moment) in moments.iter().enumerate() {
                    @let before = at.checked_sub(1).and_then(|before| moments.get(before));
                    @let gap = before.map(|before| moment.at.since(before.at)).filter(|gap| *gap > Span::ZERO);
                    li class=(moment.class) {
                        @if let Some(gap) = gap { span.gap { (text::span(gap)) } }
                        span.what { (moment.name) } span.muted { (moment.below) }
                    }
                }
            }
        } }
    }
}

/// A moment on a line of time: how long after its beginning, the class that draws it, and what it is.
pub(crate) struct Mark {
    pub(crate) at: Span,
    pub(crate) class: &'static str,
    pub(crate) title: String,
}

/// Moments on a line from their beginning to the last of them.
pub(crate) fn moments(name: &str, marks: &[Mark]) -> Markup {
    let last = marks.iter().map(|mark| mark.at).max().unwrap_or_default();
    let x = |at: Span| if last == Span::ZERO { 0.0 } else { WIDTH * at.as_micros() as f64 / last.as_micros() as f64 };
    html! {
        div.moments {
            svg viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" role="img" aria-label=(name) {
                line.track x1="0" x2=(WIDTH) y1="10" y2="10" {}
                @for mark in marks { (dot(x(mark.at), 10.0, mark.class, &mark.title)) }
            }
            div.axis aria-hidden="true" { span { "due" } @if last > Span::ZERO { span { "+" (text::span(last)) } } }
        }
    }
}

/// A round mark in a plot that is stretched: a line without length has round ends. One that is still to come is hollow.
fn dot(x: f64, y: f64, class: &str, title: &str) -> Markup {
    let path = format!("M{x:.1},{y:.1}h0");
    html! {
        path class={ "mark " (class) } d=(path) { title { (title) } }
        @if class == "next" { path.hole d=(path) {} }
    }
}

/// A row of small bars without an axis.
pub(crate) fn sparkline(name: &str, values: &[u64]) -> Markup {
    const HIGH: f64 = 20.0;
    const STEP: f64 = 4.0;
    let top = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    html! {
        svg.sparkline viewBox={ "0 0 " (values.len() as f64 * STEP) " " (HIGH) } role="img" aria-label=(name) {
            @for (at, value) in values.iter().enumerate() {
                @let high = if *value > 0 { (HIGH * *value as f64 / top).max(2.0) } else { 1.0 };
                rect x=(px(at as f64 * STEP)) y=(px(HIGH - high)) width="3" height=(px(high)) class=(if *value > 0 { "bad-mark" } else { "no-mark" }) {}
            }
        }
    }
}

/// One polyline for each stretch without a gap; a value that stands alone is a dot.
fn polylines(line: &Line<'_>, y: &dyn Fn(f64) -> f64) -> Markup {
    let step = WIDTH / line.values.len().saturating_sub(1).max(1) as f64;
    let mut stretches: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (at, value) in line.values.iter().enumerate() {
        match value {
            Some(value) => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch.push((step * at as f64, y(*value)));
                }
            }
            None => stretches.push(Vec::new()),
        }
    }
    html! {
        @for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
            @if let [(x, y)] = stretch.as_slice() {
                // A line without length has round ends, and is as round in a plot that is stretched.
                path class={ "dot " (line.class) } d={ "M" (px(*x)) "," (px(*y)) "h0" } {}
            } @else {
                polyline class=(line.class) points=(stretch.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")) {}
            }
        }
    }
}

fn px(value: f64) -> PreEscaped<String> {
    PreEscaped(format!("{value:.1}"))
}

/// The next number that is three times a round one, so that the lines between have round labels.
fn nice_ceiling(value: u64) -> u64 {
    let mut scale = 1_u64;
    loop {
        for factor in [3, 6, 9, 15] {
            if let Some(ceiling) = scale.checked_mul(factor).filter(|ceiling| *ceiling >= value) {
                return ceiling;
            }
        }
        match scale.checked_mul(10) {
            Some(next) => scale = next,
            None => return value,
        }
    }
}

/// `9 k`, `1.5 M`.
pub(crate) fn short(value: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = value / (unit / 10);
        if tenths.is_multiple_of(10) || tenths >= 1_000 {
            format!("{} {name}", tenths / 10)
        } else {
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    };
    match value {
        0..1_000 => value.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round() {
        for (value, ceiling) in [(0, 3), (3, 3), (4, 6), (10, 15), (16, 30), (8_400, 9_000), (91, 150)] {
            assert_eq!(nice_ceiling(value), ceiling, "{value}");
        }
        for (value, text) in [(0, "0"), (999, "999"), (1_500, "1.5 k"), (9_000, "9 k"), (1_200_000, "1.2 M")] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_line_has_gaps_where_there_is_nothing() {
        let line = Line { class: "line-1", values: vec![Some(1.0), Some(2.0), None, Some(3.0)] };
        let drawn = counts("n", &[line], &[]).into_string();
        assert_eq!((drawn.matches("<polyline").count(), drawn.matches("class=\"dot").count()), (1, 1), "{drawn}");
    }

    #[test]
    fn bars_keep_their_text_apart_from_their_markup() {
        let bar = Bar { value: 1, title: "<script>".to_owned(), link: Some("/a?b=\"c\"".to_owned()) };
        let drawn = bars("n", &[bar], &[]).into_string();
        assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;") && drawn.contains("b=&quot;c&quot;"), "{drawn}");
    }
}
