//! The results of a record as rows of text, for a terminal and for a report.

use crate::{
    chart::{grouped, short},
    record::{Held, Record, Run, Stream},
    workload::Workload,
};

pub const RUN_HEAD: [&str; 13] = [
    "WORKLOAD", "PENDING", "TIMERS", "PER S", "P50 MS", "P99 MS", "MAX MS", "REFUSED", "LOST", "TWICE", "CPU US", "OTHERS",
    "STEAL",
];
pub const HELD_HEAD: [&str; 8] =
    ["PENDING", "FILLED PER S", "RESIDENT MIB", "PEAK MIB", "DATABASE MIB", "DISK MIB", "PAGE MS", "COUNT MS"];

pub const STREAM_HEAD: [&str; 10] =
    ["WORKLOAD", "PENDING", "REQUESTS", "WANTED PER S", "SENT", "REFUSED", "P50 MS", "P99 MS", "MAX MS", "BEHIND MS"];

const MEBIBYTE: f64 = 1_048_576.0;
/// The share of steal time from which it is noted beside a run: from there on the p99 of lateness grows with it (bench/README.md).
const STOLEN_SHARE_NOTED: f64 = 0.005;

/// The medians of a record, under [`RUN_HEAD`]. Times are lateness where there are calls, otherwise answer times.
pub fn run_rows(record: &Record) -> Vec<[String; 13]> {
    record.medians().into_iter().map(run_row).collect()
}

/// The requests of the medians that were sent at given rates, under [`STREAM_HEAD`].
pub fn stream_rows(record: &Record) -> Vec<[String; 10]> {
    let rows = |run: &Run| run.streams.iter().map(|stream| stream_row(run, stream)).collect::<Vec<_>>();
    record.medians().into_iter().flat_map(rows).collect()
}

/// What pending timers take, under [`HELD_HEAD`].
pub fn held_rows(record: &Record) -> Vec<[String; 8]> {
    record.held.iter().map(held_row).collect()
}

/// One run in one line.
pub fn run_line(run: &Run) -> String {
    let times = run.lateness.or(run.answers).unwrap_or_default();
    let what = if run.lateness.is_some() { "late" } else { "answered in" };
    let about = Workload::of_run(&run.workload).map(Workload::about).unwrap_or_default();
    let pending = if run.pending > 0 { format!(", {} pending", grouped(run.pending as f64)) } else { String::new() };
    let failed = run.refused + run.lost + run.duplicates + run.early;
    let failed = if failed > 0 { format!("; {failed} refused, lost, early or called twice") } else { String::new() };
    let held = if run.is_held == Some(false) { " NOT HELD" } else { "" };
    let in_flight = run.in_flight_max.map(|calls| format!("; {} calls under way to the slow one", grouped(calls as f64)));
    let behind: Vec<String> =
        run.streams.iter().map(|stream| format!("; {} {} ms behind", stream.name, short(stream.behind_max_ms))).collect();
    let stolen = run.usage.stolen_share.filter(|share| *share >= STOLEN_SHARE_NOTED);
    let stolen = stolen.map_or_else(String::new, |share| format!("; steal {}", percent(share)));
    format!(
        "{} ({about}{pending}): {}/s{held}, {what} p50 {} ms, p99 {} ms{}{}{failed}{stolen}",
        run.workload,
        grouped(run.rate),
        short(times.p50),
        short(times.p99),
        in_flight.unwrap_or_default(),
        behind.concat()
    )
}

/// What pending timers take, in one line.
pub fn held_line(held: &Held) -> String {
    let mebibytes =
        |bytes: Option<u64>| bytes.map_or("? MiB".to_owned(), |bytes| format!("{} MiB", short(bytes as f64 / MEBIBYTE)));
    format!(
        "w4 ({} pending): {} resident, {} on disk, first page {} ms",
        grouped(held.timers as f64),
        mebibytes(held.resident_bytes),
        mebibytes(held.store_bytes),
        short(held.first_page_ms)
    )
}

fn run_row(run: &Run) -> [String; 13] {
    let times = run.lateness.or(run.answers).unwrap_or_default();
    let rate = grouped(run.rate);
    [
        run.workload.clone(),
        grouped(run.pending as f64),
        grouped(run.timers as f64),
        if run.is_held == Some(false) { format!("{rate} not held") } else { rate },
        short(times.p50),
        short(times.p99),
        short(times.max),
        run.refused.to_string(),
        run.lost.to_string(),
        run.duplicates.to_string(),
        run.cpu_micros_each.map_or("-".to_owned(), |micros| format!("{micros:.1}")),
        run.usage.foreign_share.map_or("-".to_owned(), percent),
        run.usage.stolen_share.map_or("-".to_owned(), percent),
    ]
}

/// A share as it stands in a table. Half a percent of steal is much, so small ones have a decimal.
pub fn percent(share: f64) -> String {
    let digits = usize::from(share < 0.0995);
    format!("{:.digits$} %", share * 100.0)
}

fn stream_row(run: &Run, stream: &Stream) -> [String; 10] {
    [
        run.workload.clone(),
        grouped(run.pending as f64),
        stream.name.clone(),
        grouped(stream.per_second),
        grouped(stream.requests as f64),
        stream.refused.to_string(),
        short(stream.answers.p50),
        short(stream.answers.p99),
        short(stream.answers.max),
        short(stream.behind_max_ms),
    ]
}

fn held_row(held: &Held) -> [String; 8] {
    let mebibytes = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes as f64 / MEBIBYTE));
    [
        grouped(held.timers as f64),
        held.fill_rate.map_or("-".to_owned(), grouped),
        mebibytes(held.resident_bytes),
        mebibytes(held.resident_bytes_max),
        mebibytes(held.database_bytes),
        mebibytes(held.store_bytes),
        short(held.first_page_ms),
        short(held.count_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{percentiles::Percentiles, usage::Usage};

    #[test]
    fn a_row_shows_lateness_where_there_are_calls_and_answers_elsewhere() {
        let percentiles = |p50| Some(Percentiles { p50, ..Percentiles::default() });
        let run = Run { workload: "w5".to_owned(), rate: 12_345.6, answers: percentiles(1.0), ..Run::default() };
        assert_eq!(run_row(&run)[3..5], ["12,346".to_owned(), "1.00".to_owned()]);
        let run = Run { lateness: percentiles(2.0), is_held: Some(false), ..run };
        assert_eq!(run_row(&run)[3..5], ["12,346 not held".to_owned(), "2.00".to_owned()]);
        assert!(run_line(&run).starts_with("w5 (creates and calls at one steady rate): 12,346/s NOT HELD, late p50 2.00 ms"));
    }

    #[test]
    fn what_other_processes_and_the_host_took_is_shown_and_the_line_speaks_of_the_host_only_where_it_matters() {
        let shares = |foreign, stolen| Usage { foreign_share: foreign, stolen_share: stolen, ..Usage::default() };
        let run = Run { usage: shares(Some(0.21), Some(0.1)), ..Run::default() };
        assert_eq!(run_row(&run)[11..], ["21 %", "10 %"]);
        assert!(run_line(&run).ends_with("; steal 10 %"));
        let quiet = Run { usage: shares(None, Some(0.004)), ..Run::default() };
        assert_eq!(run_row(&quiet)[11..], ["-", "0.4 %"]);
        assert!(!run_line(&quiet).contains("steal"));
    }

    #[test]
    fn a_stream_has_a_row_of_its_own_and_the_line_says_how_far_it_fell_behind() {
        let answers = Percentiles { p50: 1.0, p99: 3.0, max: 9.0, ..Percentiles::default() };
        let stream = Stream {
            name: "creates".to_owned(),
            per_second: 1_000.0,
            requests: 30_000,
            answers,
            behind_max_ms: 12.0,
            ..Stream::default()
        };
        let run = Run { workload: "lists 20/s".to_owned(), streams: vec![stream], in_flight_max: Some(7), ..Run::default() };
        let line = run_line(&run);
        assert!(line.starts_with("lists 20/s (the same beside so many lists a second): "), "{line}");
        assert!(line.ends_with("; 7 calls under way to the slow one; creates 12.0 ms behind"), "{line}");
        let rows = stream_rows(&Record { runs: vec![run], ..Record::default() });
        let expected = ["lists 20/s", "0", "creates", "1,000", "30,000", "0", "1.00", "3.00", "9.00", "12.0"];
        assert_eq!(rows, [expected.map(str::to_owned)]);
    }

    #[test]
    fn what_could_not_be_seen_is_a_dash() {
        assert_eq!(
            held_row(&Held { timers: 200_000, ..Held::default() })[..6],
            ["200,000", "-", "-", "-", "-", "-"].map(str::to_owned)
        );
    }
}
