//! The report page: the machine, the settings, the results of each store, and two charts.

use std::fmt::Write as _;

use crate::{
    chart::{Axis, Chart, Line, grouped, short},
    percentiles::Percentiles,
    record::{Record, Run, by_service},
    summary::{HELD_HEAD, RUN_HEAD, STREAM_HEAD, held_rows, run_rows, stream_rows},
    workload::Workload,
};

/// One colour for each record; they can be told apart in shades of grey too.
const COLOURS: [&str; 4] = ["#1f6feb", "#d1600a", "#1a7f5a", "#8a3ffc"];
const GIBIBYTE: f64 = 1_073_741_824.0;

#[derive(Debug)]
pub struct Report {
    pub markdown: String,
    /// File names and contents of the charts that the page refers to.
    pub charts: Vec<(String, String)>,
}

/// The page `<stem>.md` of these records.
pub fn report(records: &[Record], stem: &str) -> Report {
    let records = &by_service(records)[..];
    let mut text = String::new();
    let date = records.first().map(day).unwrap_or_default();
    put(&mut text, format_args!("# Measured on {date}\n\nMade by `timer bench`. A result is the median run of its workload.\n"));
    let mut charts = Vec::new();
    for (chart, suffix) in [(lateness_chart(records), "lateness"), (size_chart(records), "size")] {
        if let Some(chart) = chart {
            let name = format!("{stem}-{suffix}.svg");
            put(&mut text, format_args!("\n![{}]({name})\n", chart.title));
            charts.push((name, chart.svg()));
        }
    }
    push_workloads(&mut text, records);
    for record in records {
        push_record(&mut text, record);
    }
    Report { markdown: text, charts }
}

/// The day on which a record was begun: `2030-01-31`.
pub fn day(record: &Record) -> &str {
    record.started_at.get(..10).unwrap_or("an unknown day")
}

fn push_workloads(text: &mut String, records: &[Record]) {
    let is_there = |workload: &Workload| {
        let has_run = |record: &Record| record.runs.iter().any(|run| Workload::of_run(&run.workload) == Some(*workload));
        records.iter().any(|record| has_run(record) || *workload == Workload::W4 && !record.held.is_empty())
    };
    text.push_str("\n| workload | measures |\n|---|---|\n");
    for workload in Workload::all().filter(is_there) {
        put(text, format_args!("| {workload} | {} |\n", workload.about()));
    }
    text.push_str(
        "\nTimes are lateness at the receiver (arrival less due time) where there are calls, otherwise times of answers. `cpu us` is CPU time of the \
         service and its database for each timer, `others` the share of the machine that other processes took meanwhile, `steal` the share that its host \
         took (a virtual machine only), `ceiling` the share of what load client and receiver reach without a service between them.\n",
    );
}

fn push_record(text: &mut String, record: &Record) {
    put(text, format_args!("\n## {}\n\n", record.service.store));
    push_head(text, record);
    let head: Vec<String> = RUN_HEAD.iter().map(|name| name.to_lowercase()).chain(["ceiling".to_owned()]).collect();
    let ceilings = record.medians().into_iter().map(|run| of_ceiling(record, run));
    let rows = run_rows(record).into_iter().zip(ceilings).map(|(row, ceiling)| row.into_iter().chain([ceiling]).collect());
    push_table(text, &head, rows);
    let streams = stream_rows(record);
    if !streams.is_empty() {
        text.push_str("\nRequests that were sent at a given rate, whether or not the service kept up:\n\n");
        let head: Vec<String> = STREAM_HEAD.iter().map(|name| name.to_lowercase()).collect();
        push_table(text, &head, streams.into_iter().map(|row| row.to_vec()));
    }
    for run in record.medians() {
        if let Some(calls) = run.in_flight_max {
            put(
                text,
                format_args!("\n{}: the slow receiver had up to {} calls under way.\n", run.workload, grouped(calls as f64)),
            );
        }
    }
    let held = held_rows(record);
    if !held.is_empty() {
        text.push('\n');
        let head: Vec<String> = HELD_HEAD.iter().map(|name| name.to_lowercase()).collect();
        push_table(text, &head, held.into_iter().map(|row| row.to_vec()));
    }
    if !record.climb.is_empty() {
        text.push_str("\nThe rates on the way to the highest one, with the p99 of lateness: ");
        let step = |run: &Run| match run.lateness {
            Some(lateness) if run.is_held == Some(true) => format!("{}/s {} ms", grouped(run.rate), short(lateness.p99)),
            // At a rate that is too high, the latest calls have not arrived at all, so percentiles would mislead.
            _ => format!("{}/s not held", grouped(run.rate)),
        };
        let steps: Vec<String> = record.climb.iter().map(step).collect();
        put(text, format_args!("{}.\n", steps.join(", ")));
    }
}

fn push_head(text: &mut String, record: &Record) {
    let (machine, service) = (&record.machine, &record.service);
    put(
        text,
        format_args!(
            "- machine: {}, {} cores, {:.0} GiB of memory, Linux {}\n- service: timer {}",
            machine.cpu,
            machine.cores,
            machine.memory_bytes as f64 / GIBIBYTE,
            machine.kernel,
            service.version
        ),
    );
    let settings: Vec<String> = service.settings.iter().map(|(name, value)| format!("`{name}={value}`")).collect();
    put(text, format_args!("{}{}\n", if settings.is_empty() { "" } else { ", " }, settings.join(" ")));
    if let Some(note) = &service.note {
        put(text, format_args!("- {note}\n"));
    }
    if let Some(disk) = &record.disk {
        let Percentiles { p50, p99, .. } = disk.write;
        let kind = disk.filesystem.as_deref().unwrap_or("unknown file system");
        put(text, format_args!("- disk ({kind}): 4 KiB overwritten and synced in p50 {p50:.3} ms, p99 {p99:.3} ms\n"));
    }
    if let Some(memory) = &record.memory {
        let (copied, access) = (memory.copied_gigabytes_per_second, memory.access_nanoseconds);
        put(text, format_args!("- memory: {copied:.1} GB/s copied, {access:.0} ns for a random access\n"));
    }
    for ceiling in &record.ceilings {
        let (posts, connections) = (grouped(ceiling.posts_per_second), ceiling.connections);
        put(text, format_args!("- without a service: {posts} posts/s over {connections} connections\n"));
    }
    text.push('\n');
}

fn of_ceiling(record: &Record, run: &Run) -> String {
    // With a given rate, or many timers in one request, the comparison means nothing.
    let is_comparable = ["w1", "w1c", "w2", "w2x"].contains(&run.workload.as_str());
    let ceiling = record.ceiling(run.connections).filter(|_| is_comparable);
    ceiling.map_or("-".to_owned(), |ceiling| format!("{:.0} %", run.rate / ceiling * 100.0))
}

fn push_table(text: &mut String, head: &[String], rows: impl Iterator<Item = Vec<String>>) {
    let right = head.iter().skip(1).map(|_| "---:").collect::<Vec<_>>().join("|");
    put(text, format_args!("| {} |\n|---|{right}|\n", head.join(" | ")));
    for row in rows {
        put(text, format_args!("| {} |\n", row.join(" | ")));
    }
}

/// Lateness from the median to the maximum: of a burst (dashed) and of a steady rate.
fn lateness_chart(records: &[Record]) -> Option<Chart> {
    let mut lines = Vec::new();
    for (record, colour) in records.iter().zip(COLOURS.iter().cycle()) {
        for run in record.medians().into_iter().filter(|run| run.pending == 0 && ["w2", "w3"].contains(&run.workload.as_str())) {
            let Some(Percentiles { p50, p90, p99, p999, max, .. }) = run.lateness else { continue };
            // Lateness below a microsecond is below the resolution of the clock.
            let points = (0_u32..).zip([p50, p90, p99, p999, max]).map(|(x, y)| (f64::from(x), y.max(0.001))).collect();
            let name = format!("{}, {}", record.service.store, run.workload);
            lines.push(Line { name, colour, is_dashed: run.workload == "w2", points });
        }
    }
    let ticks = (0_u32..).zip(["p50", "p90", "p99", "p99.9", "max"]).map(|(x, name)| (f64::from(x), name.to_owned())).collect();
    let y = Axis::logarithmic(values(&lines));
    let subtitle = "At the receiver, in milliseconds. Solid: one call every 2 ms (w3). Dashed: all due at one instant (w2).";
    (!lines.is_empty()).then(|| Chart {
        title: "How late the calls are".to_owned(),
        subtitle: subtitle.to_owned(),
        x: Axis { name: "percentile of all calls".to_owned(), is_logarithmic: false, from: 0.0, to: 4.0, ticks },
        y,
        lines,
    })
}

/// Throughput against the number of pending timers. Only for records that have both.
fn size_chart(records: &[Record]) -> Option<Chart> {
    let mut sizes: Vec<u64> =
        records.iter().flat_map(|record| &record.runs).map(|run| run.pending).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let least = *sizes.first()? as f64;
    // A logarithmic axis has no zero: the empty service stands a decade before the first size.
    let place = |size: u64| if size == 0 { least.log10() - 1.0 } else { (size as f64).log10() };
    let mut lines = Vec::new();
    for (record, colour) in records.iter().zip(COLOURS.iter().cycle()) {
        for (workload, is_dashed) in [("w1", false), ("w2", true)] {
            let runs = record.medians().into_iter().filter(|run| run.workload == workload);
            let mut points: Vec<(f64, f64)> = runs.map(|run| (place(run.pending), run.rate)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if points.len() > 1 {
                lines.push(Line { name: format!("{}, {workload}", record.service.store), colour, is_dashed, points });
            }
        }
    }
    let ticks = std::iter::once(0).chain(sizes.iter().copied()).map(|size| (place(size), grouped(size as f64))).collect();
    let to = sizes.last().map_or(1.0, |size| place(*size));
    let y = Axis::linear(values(&lines));
    (!lines.is_empty()).then(|| Chart {
        title: "Throughput while many timers are pending".to_owned(),
        subtitle: "Timers per second. Solid: creates (w1). Dashed: calls, all due at one instant (w2).".to_owned(),
        x: Axis { name: "pending timers (logarithmic)".to_owned(), is_logarithmic: false, from: place(0), to, ticks },
        y,
        lines,
    })
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y))
}

/// Writing to a string cannot fail.
fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Ceiling, Held, Service};

    fn run(workload: &str, pending: u64, rate: f64) -> Run {
        let lateness = Some(Percentiles { p50: 1.0, p90: 2.0, p99: 4.0, p999: 8.0, max: 16.0, ..Percentiles::default() });
        Run { workload: workload.to_owned(), pending, rate, connections: 64, lateness, ..Run::default() }
    }

    fn record(store: &str) -> Record {
        Record {
            started_at: "2030-01-31T10:30:00Z".to_owned(),
            service: Service { store: store.to_owned(), version: "1.2.3".to_owned(), ..Service::default() },
            ceilings: vec![Ceiling { connections: 64, posts_per_second: 100_000.0, foreign_share: None }],
            runs: vec![run("w1", 0, 35_000.0), run("w2", 0, 40_000.0), run("w3", 0, 500.0), run("w1", 200_000, 34_000.0)],
            held: vec![Held { timers: 200_000, ..Held::default() }],
            climb: vec![
                Run { is_held: Some(true), ..run("w5 climb", 0, 2_000.0) },
                Run { is_held: Some(false), lateness: None, ..run("w5 climb", 0, 2_600.0) },
            ],
            ..Record::default()
        }
    }

    #[test]
    fn a_report_has_a_part_for_each_store_and_names_its_charts() {
        let report = report(&[record("SQLite"), record("PostgreSQL 17")], "2030-01-31");
        let text = &report.markdown;
        assert!(text.starts_with("# Measured on 2030-01-31\n"), "{text}");
        for part in [
            "## SQLite",
            "## PostgreSQL 17",
            "| others | steal | ceiling |",
            "| w1 | 0 | 0 | 35,000 |",
            "| 35 % |",
            "(2030-01-31-lateness.svg)",
            "(2030-01-31-size.svg)",
            "lateness: 2,000/s 4.00 ms, 2,600/s not held.",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(
            report.charts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["2030-01-31-lateness.svg", "2030-01-31-size.svg"]
        );
        let lines = |chart: usize| report.charts[chart].1.matches("<polyline").count();
        // W2 and W3 of two stores; W1 of two stores, because W2 has only one size.
        assert_eq!((lines(0), lines(1)), (4, 2));
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_head() {
        let text = report(&[record("SQLite")], "x").markdown;
        let mut cells = 0;
        for line in text.lines() {
            let count = line.matches('|').count();
            if line.starts_with('|') {
                assert!(cells == 0 || cells == count, "{line}");
                cells = count;
            } else {
                cells = 0;
            }
        }
    }

    #[test]
    fn without_results_there_is_no_chart() {
        assert!(report(&[Record::default()], "x").charts.is_empty());
    }
}
