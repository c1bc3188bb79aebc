//! What `timer bench` prints and writes.

use std::{fs, path::Path};

use bench::{Comparison, Disk, Memory, Note, Record, Side};
use serde::Serialize;
use terminal::table;

use super::refuse;
use crate::exit::{Failure, print, say};

/// On a terminal one line that changes, elsewhere a line for each result.
pub fn tell(note: &Note<'_>, is_terminal: bool) {
    let result = match note {
        Note::Doing(what) if is_terminal => {
            eprint_over(what);
            return;
        }
        Note::Doing(_) => return,
        Note::Done(run) => bench::run_line(run),
        Note::Held(held) => bench::held_line(held),
    };
    if is_terminal {
        eprint_over("");
    }
    say(format_args!("{result}"));
}

/// Writes over the line that the cursor is in.
fn eprint_over(text: &str) {
    use std::io::Write;
    let dots = if text.is_empty() { "" } else { " …" };
    let _ = write!(std::io::stderr(), "\r\x1b[K{text}{dots}");
}

pub fn show(record: &Record) {
    let mut rows = vec![bench::RUN_HEAD.map(str::to_owned)];
    rows.extend(bench::run_rows(record));
    print(format_args!("\n{} {}\n\n{}", record.service.store, record.service.url, table(&rows)));
    let streams = bench::stream_rows(record);
    if !streams.is_empty() {
        let mut rows = vec![bench::STREAM_HEAD.map(str::to_owned)];
        rows.extend(streams);
        print(format_args!("\n{}", table(&rows)));
    }
    let held = bench::held_rows(record);
    if !held.is_empty() {
        let mut rows = vec![bench::HELD_HEAD.map(str::to_owned)];
        rows.extend(held);
        print(format_args!("\n{}", table(&rows)));
    }
    print(format_args!(""));
    for run in &record.runs {
        if let Some(calls) = run.in_flight_max {
            print(format_args!("{}: the slow receiver had up to {calls} calls under way.", run.workload));
        }
    }
    for ceiling in &record.ceilings {
        let (posts, connections) = (ceiling.posts_per_second, ceiling.connections);
        print(format_args!("Without a service: {posts:.0} posts/s over {connections} connections."));
    }
    show_conditions(record.disk.as_ref(), record.memory);
    for refusal in record.runs.iter().filter_map(|run| run.first_refusal.as_ref()) {
        print(format_args!("Refused: {refusal}"));
    }
}

/// The ratios of two builds.
pub fn show_comparison(comparison: &Comparison) {
    let mut rows = vec![bench::RATIO_HEAD.map(str::to_owned)];
    rows.extend(bench::ratio_rows(&comparison.ratios));
    let side = |side: &Side| format!("timer {} ({})", side.service.version, side.program);
    print(format_args!(
        "\n{} divided by {}, on {}: the median of the pairs, and their range; \
         STEAL is the median of each side",
        side(&comparison.ours),
        side(&comparison.other),
        comparison.ours.service.store
    ));
    print(format_args!("\n{}\n", table(&rows)));
    show_conditions(comparison.disk.as_ref(), comparison.memory);
    for pair in &comparison.pairs {
        for refusal in [&pair.ours, &pair.other].into_iter().filter_map(|run| run.first_refusal.as_ref()) {
            print(format_args!("Refused: {refusal}"));
        }
    }
}

fn show_conditions(disk: Option<&Disk>, memory: Option<Memory>) {
    if let Some(Disk { write, .. }) = disk {
        print(format_args!("Disk: 4 KiB overwritten and synced in p50 {:.3} ms, p99 {:.3} ms.", write.p50, write.p99));
    }
    if let Some(Memory { copied_gigabytes_per_second, access_nanoseconds }) = memory {
        print(format_args!(
            "Memory: {copied_gigabytes_per_second:.1} GB/s copied, {access_nanoseconds:.0} ns for a random access."
        ));
    }
}

pub fn write_json(results: &impl Serialize, file: &str) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(results).map_err(|error| Failure::run(format!("no JSON can be made: {error}."), error))?;
    if file == "-" {
        print(format_args!("{text}"));
        return Ok(());
    }
    write(Path::new(file), &text)
}

pub fn write_report(records: &[Record], page: &Path) -> Result<(), Failure> {
    let stem = page.file_stem().and_then(|stem| stem.to_str()).unwrap_or("report");
    let report = bench::report(records, stem);
    let directory = page.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(directory).map_err(|error| refuse(format!("{} cannot be made: {error}.", directory.display())))?;
    write(page, &report.markdown)?;
    for (name, svg) in &report.charts {
        write(&directory.join(name), svg)?;
    }
    say(format_args!("Written to {}.", page.display()));
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure::run(format!("{} cannot be written: {error}.", file.display()), error))
}
