//! A line chart as SVG, written by hand: it is displayed beside the report, in a browser or on a code host, and needs nothing
//! else.

use std::fmt::Write as _;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 60.0;
/// The least distance between the names at the ends of lines.
const NAME_GAP: f64 = 16.0;

#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub struct Axis {
    /// Written below the axis. What the vertical axis shows stands in the subtitle.
    pub name: String,
    pub is_logarithmic: bool,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub name: String,
    pub colour: &'static str,
    pub is_dashed: bool,
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// The position of `value`: 0 at the beginning, 1 at the end. Values outside are moved to the edge.
    fn place(&self, value: f64) -> f64 {
        let place = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE).ln() - self.from.ln()) / (self.to.ln() - self.from.ln())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// From 0 to a round number above all `values`, with a few round ticks.
    pub fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let max = values.into_iter().fold(0.0, f64::max).max(1.0);
        let step = round_step(max / 5.0);
        let count = (max / step).ceil() as u32;
        let ticks = (0..=count).map(|n| f64::from(n) * step).map(|value| (value, grouped(value))).collect();
        Self { name: String::new(), is_logarithmic: false, from: 0.0, to: f64::from(count) * step, ticks }
    }

    /// From a power of ten below all `values` to one above them.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let positive: Vec<f64> = values.into_iter().filter(|value| *value > 0.0).collect();
        let low = positive.iter().copied().fold(f64::INFINITY, f64::min);
        let high = positive.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if positive.is_empty() { (1.0, 10.0) } else { (low, high) };
        let (first, mut last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        last = last.max(first + 1);
        let ticks = (first..=last).map(|power| 10f64.powi(power)).map(|value| (value, grouped(value))).collect();
        Self { name: String::new(), is_logarithmic: true, from: 10f64.powi(first), to: 10f64.powi(last), ticks }
    }
}

impl Chart {
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        self.push_frame(&mut svg);
        self.push_grid(&mut svg);
        for line in &self.lines {
            self.push_line(&mut svg, line);
        }
        self.push_names(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn push_frame(&self, svg: &mut String) {
        let (title, subtitle) = (escape(&self.title), escape(&self.subtitle));
        let x = escape(&self.x.name);
        let (middle, bottom) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16.0);
        put(
            svg,
            format_args!(
                r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12" role="img" aria-label="{title}">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="24" y="28" font-size="16" font-weight="600" fill="#1f2933">{title}</text>
<text x="24" y="48" fill="#52606d">{subtitle}</text>
<text x="{middle}" y="{bottom}" text-anchor="middle" fill="#52606d">{x}</text>
"##,
            ),
        );
    }

    fn push_grid(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, text) in &self.y.ticks {
            let y = self.at_y(*value);
            put(
                svg,
                format_args!(
                    r##"<path d="M{LEFT} {y:.1}H{right}" stroke="#e4e7eb"/><text x="{x}" y="{base:.1}" text-anchor="end" fill="#52606d">{text}</text>
"##,
                    x = LEFT - 8.0,
                    base = y + 4.0,
                ),
            );
        }
        for (value, text) in &self.x.ticks {
            let x = self.at_x(*value);
            put(
                svg,
                format_args!(
                    r##"<path d="M{x:.1} {bottom}v5" stroke="#9aa5b1"/><text x="{x:.1}" y="{y}" text-anchor="middle" fill="#52606d">{text}</text>
"##,
                    y = bottom + 20.0,
                ),
            );
        }
        put(svg, format_args!("<path d=\"M{LEFT} {bottom}H{right}\" stroke=\"#9aa5b1\"/>\n"));
    }

    fn push_line(&self, svg: &mut String, line: &Line) {
        let points: Vec<_> = line.points.iter().map(|(x, y)| (self.at_x(*x), self.at_y(*y))).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (colour, path) = (line.colour, path.join(" "));
        let dashes = if line.is_dashed { r#" stroke-dasharray="6 4""# } else { "" };
        put(
            svg,
            format_args!(
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes} stroke-linejoin=\"round\"/>\n"
            ),
        );
        for ((x, y), (_, value)) in points.iter().zip(&line.points) {
            let name = escape(&line.name);
            put(
                svg,
                format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{name}: {}</title></circle>\n",
                    short(*value)
                ),
            );
        }
    }

    /// The name and the last value of each line stand where the line ends, moved apart where lines end close together.
    fn push_names(&self, svg: &mut String) {
        let mut ends: Vec<(f64, &Line, f64)> =
            self.lines.iter().filter_map(|line| line.points.last().map(|(_, y)| (self.at_y(*y), line, *y))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places = spread(&ends.iter().map(|end| end.0).collect::<Vec<_>>(), NAME_GAP, HEIGHT - BOTTOM);
        for ((_, line, value), y) in ends.iter().zip(places) {
            let (x, base) = (WIDTH - RIGHT + 12.0, y + 4.0);
            let (name, colour, value) = (escape(&line.name), line.colour, short(*value));
            put(
                svg,
                format_args!("<text x=\"{x}\" y=\"{base:.1}\" fill=\"{colour}\" font-weight=\"600\">{name} {value}</text>\n"),
            );
        }
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - 12.0 - BOTTOM)
    }
}

/// Moves positions, given in ascending order, apart until each is `gap` from the next, and none is above `max`.
fn spread(places: &[f64], gap: f64, max: f64) -> Vec<f64> {
    let mut spread: Vec<f64> = Vec::new();
    for place in places {
        let least = spread.last().map_or(f64::NEG_INFINITY, |last| last + gap);
        spread.push(place.max(least));
    }
    let mut most = max;
    for place in spread.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    spread
}

/// 1, 2 or 5 times a power of ten, and not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// A number with separators for thousands; small numbers as they are.
pub fn grouped(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 {
        return format!("{value}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A measured number with its significant digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => grouped(value),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writing to a string cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = |name: &str, points: &[(f64, f64)]| Line {
            name: name.to_owned(),
            colour: "#123456",
            is_dashed: false,
            points: points.to_vec(),
        };
        Chart {
            title: "A & B".to_owned(),
            subtitle: "sub".to_owned(),
            x: Axis { name: "x".to_owned(), is_logarithmic: false, from: 0.0, to: 2.0, ticks: vec![(0.0, "p50".to_owned())] },
            y: Axis::logarithmic([1.0, 100.0]),
            lines: vec![line("one", &[(0.0, 1.0), (1.0, 10.0), (2.0, 100.0)]), line("two", &[(2.0, 99.0)])],
        }
    }

    #[test]
    fn a_line_goes_through_its_points_from_edge_to_edge() {
        let svg = chart().svg();
        assert!(svg.contains(r#"<polyline points="76.0,380.0 383.0,228.0 690.0,76.0""#), "{svg}");
        assert!(svg.contains("A &amp; B") && !svg.contains("A & B"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn every_element_is_closed() {
        let svg = chart().svg();
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn names_at_the_ends_do_not_overlap_and_stay_inside() {
        assert_eq!(spread(&[10.0, 12.0, 50.0], 16.0, 100.0), [10.0, 26.0, 50.0]);
        assert_eq!(spread(&[90.0, 95.0, 99.0], 16.0, 100.0), [68.0, 84.0, 100.0]);
    }

    #[test]
    fn axes_have_round_ends() {
        let axis = Axis::linear([0.0, 43_210.0]);
        assert_eq!((axis.from, axis.to), (0.0, 50_000.0));
        assert_eq!(axis.ticks.last().unwrap().1, "50,000");
        let axis = Axis::logarithmic([0.0, 0.3, 812.0]);
        assert_eq!((axis.from, axis.to), (0.1, 1_000.0));
        assert_eq!(axis.ticks.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["0.1", "1", "10", "100", "1,000"]);
        assert_eq!(Axis::logarithmic([]).to, 10.0);
    }

    #[test]
    fn numbers_have_as_many_digits_as_mean_something() {
        for (value, text) in
            [(0.0, "0.00"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (43_210.4, "43,210"), (-1_000.0, "-1,000")]
        {
            assert_eq!(short(value), text);
        }
    }
}
