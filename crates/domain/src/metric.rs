/// The description of a metric. Every crate has one table of them. From it the service describes each metric and exports it at
/// zero from the start, so that the first event is an increase and not the beginning of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// The names of its labels, each with the values that are known from the start.
    pub labels: &'static [MetricLabel],
}

pub type MetricLabel = (&'static str, &'static [&'static str]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl Metric {
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, help, labels: &[] }
    }

    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, help, labels: &[] }
    }

    pub const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, help, labels: &[] }
    }

    /// The same, with a series for every combination of these values. A label without known values has no series at the start.
    #[must_use]
    pub const fn by(self, labels: &'static [MetricLabel]) -> Self {
        Self { labels, ..self }
    }

    /// The labels of the series that exist from the start.
    pub fn series(&self) -> Vec<Vec<(&'static str, &'static str)>> {
        self.labels.iter().fold(vec![Vec::new()], |series, (name, values)| {
            let with =
                |known: &Vec<_>| values.iter().map(|value| [known.as_slice(), &[(*name, *value)]].concat()).collect::<Vec<_>>();
            series.iter().flat_map(with).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_series_for_every_combination_of_known_values() {
        let metric = Metric::counter("calls_total", "Calls.");
        assert_eq!(metric.series(), [vec![]]);
        assert_eq!(
            metric.by(&[("kind", &["http", "nats"]), ("result", &["ok"])]).series(),
            [[("kind", "http"), ("result", "ok")], [("kind", "nats"), ("result", "ok")]]
        );
        assert!(metric.by(&[("connection", &[])]).series().is_empty());
    }
}
