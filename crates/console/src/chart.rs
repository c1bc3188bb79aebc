//! Charts: SVG that is drawn here and takes its colours from the style sheet.

use maud::{Markup, PreEscaped, html};

const LEFT: f64 = 44.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;

/// One bar: how high it is, what it is called, and where it leads to.
pub(crate) struct Bar {
    pub(crate) value: u64,
    pub(crate) title: String,
    pub(crate) link: String,
}

/// Bars over time, with labels below at equal distances.
pub(crate) fn bars(name: &str, bars: &[Bar], labels: &[String], width: f64, height: f64) -> Markup {
    let top = nice_ceiling(bars.iter().map(|bar| bar.value).max().unwrap_or(0));
    let (floor, plot) = (height - BOTTOM, height - BOTTOM - TOP);
    let step = (width - LEFT) / bars.len().max(1) as f64;
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (height) } role="group" aria-label=(name) {
            @for line in 0..=3_u64 {
                @let y = floor - plot * line as f64 / 3.0;
                (grid_line(y, width, &short(top * line / 3)))
            }
            @for (at, bar) in bars.iter().enumerate() {
                @let high = plot * bar.value as f64 / top as f64;
                @let high = if bar.value > 0 { high.max(1.5) } else { 0.0 };
                @let x = LEFT + step * at as f64;
                a href=(bar.link) aria-label=(bar.title) {
                    // The whole column can be pointed at.
                    rect.hit x=(px(x)) y=(px(TOP)) width=(px(step)) height=(px(plot)) { title { (bar.title) } }
                    rect.bar-mark x=(px(x + step * 0.1)) y=(px(floor - high)) width=(px((step * 0.8).max(0.5))) height=(px(high)) rx="1.5" {}
                }
            }
            (axis(labels, width, height))
        }
    }
}

/// A line: the class that draws it, and its values; there is a gap where there is none.
pub(crate) struct Line<'a> {
    pub(crate) class: &'a str,
    pub(crate) values: Vec<Option<f64>>,
}

/// Lines of lengths of time on a logarithmic scale, from a tenth of a millisecond to a hundred seconds, with a mark at one second.
pub(crate) fn lateness(name: &str, lines: &[Line<'_>], labels: &[String], width: f64, height: f64) -> Markup {
    const DECADES: [(f64, &str); 6] = [
        (100.0, "0.1 ms"),
        (1_000.0, "1 ms"),
        (10_000.0, "10 ms"),
        (100_000.0, "0.1 s"),
        (1_000_000.0, "1 s"),
        (10_000_000.0, "10 s"),
    ];
    let (lowest, highest) = (100.0_f64.log10(), 10_000_000.0_f64.log10());
    let (floor, plot) = (height - BOTTOM, height - BOTTOM - TOP);
    let y = |micros: f64| floor - plot * ((micros.max(1.0).log10() - lowest) / (highest - lowest)).clamp(0.0, 1.0);
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(name) {
            @for (micros, label) in DECADES {
                (grid_line(y(micros), width, label))
            }
            line.promise x1=(LEFT) x2=(width) y1=(px(y(1_000_000.0))) y2=(px(y(1_000_000.0))) {}
            @for line in lines { (polylines(line, width, &y)) }
            (axis(labels, width, height))
        }
    }
}

/// Lines of counts on a linear scale.
pub(crate) fn counts(name: &str, lines: &[Line<'_>], labels: &[String], width: f64, height: f64) -> Markup {
    let most = lines.iter().flat_map(|line| &line.values).flatten().fold(0.0_f64, |most, value| most.max(*value));
    let top = nice_ceiling(most as u64);
    let (floor, plot) = (height - BOTTOM, height - BOTTOM - TOP);
    let y = |value: f64| floor - plot * (value / top as f64).clamp(0.0, 1.0);
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(name) {
            @for line in 0..=3_u64 {
                (grid_line(floor - plot * line as f64 / 3.0, width, &short(top * line / 3)))
            }
            @for line in lines { (polylines(line, width, &y)) }
            (axis(labels, width, height))
        }
    }
}

/// A moment in the life of something, above and below a line.
pub(crate) struct Moment {
    pub(crate) name: String,
    pub(crate) below: Markup,
    pub(crate) class: &'static str,
}

/// What happened one after the other, as a list that the style sheet draws as a line.
pub(crate) fn life(moments: &[Moment]) -> Markup {
    html! {
        ol.life {
            @for moment in moments {
                li class=(moment.class) { span.what { (moment.name) } span.muted { (moment.below) } }
            }
        }
    }
}

/// A row of small bars without an axis.
pub(crate) fn sparkline(name: &str, values: &[u64]) -> Markup {
    const HEIGHT: f64 = 20.0;
    const STEP: f64 = 4.0;
    let top = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    html! {
        svg.sparkline viewBox={ "0 0 " (values.len() as f64 * STEP) " " (HEIGHT) } role="img" aria-label=(name) {
            @for (at, value) in values.iter().enumerate() {
                @let high = if *value > 0 { (HEIGHT * *value as f64 / top).max(2.0) } else { 1.0 };
                rect x=(px(at as f64 * STEP)) y=(px(HEIGHT - high)) width="3" height=(px(high)) class=(if *value > 0 { "bad-mark" } else { "no-mark" }) {}
            }
        }
    }
}

fn grid_line(y: f64, width: f64, label: &str) -> Markup {
    html! {
        line.grid-line x1=(LEFT) x2=(width) y1=(px(y)) y2=(px(y)) {}
        text x=(LEFT - 6.0) y=(px(y + 4.0)) text-anchor="end" { (label) }
    }
}

fn axis(labels: &[String], width: f64, height: f64) -> Markup {
    let last = labels.len().saturating_sub(1).max(1) as f64;
    html! {
        @for (at, label) in labels.iter().enumerate() {
            @let anchor = if at == 0 { "start" } else if at + 1 == labels.len() { "end" } else { "middle" };
            text x=(px(LEFT + (width - LEFT) * at as f64 / last)) y=(px(height - 5.0)) text-anchor=(anchor) { (label) }
        }
    }
}

/// One polyline for each stretch without a gap; a value that stands alone is a dot.
fn polylines(line: &Line<'_>, width: f64, y: &dyn Fn(f64) -> f64) -> Markup {
    let step = (width - LEFT) / line.values.len().saturating_sub(1).max(1) as f64;
    let mut stretches: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (at, value) in line.values.iter().enumerate() {
        match value {
            Some(value) => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch.push((LEFT + step * at as f64, y(*value)));
                }
            }
            None => stretches.push(Vec::new()),
        }
    }
    html! {
        @for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
            @if let [(x, y)] = stretch.as_slice() {
                circle class={ "dot " (line.class) } cx=(px(*x)) cy=(px(*y)) r="2" {}
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
        let drawn = counts("n", &[line], &[], 100.0, 50.0).into_string();
        assert_eq!((drawn.matches("<polyline").count(), drawn.matches("<circle").count()), (1, 1), "{drawn}");
    }

    #[test]
    fn bars_keep_their_text_apart_from_their_markup() {
        let bar = Bar { value: 1, title: "<script>".to_owned(), link: "/a?b=\"c\"".to_owned() };
        let drawn = bars("n", &[bar], &[], 100.0, 50.0).into_string();
        assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;") && drawn.contains("b=&quot;c&quot;"), "{drawn}");
    }
}
