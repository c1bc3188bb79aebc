//! `timer bench`: puts a service under load, and shows how it does. The load itself is the crate `bench`.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs,
    io::IsTerminal,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use bench::{Campaign, Embedded, Failed, Note, Record, Session, Target, Wanted, Workload};
use domain::{Clock, Span, SystemClock};
use terminal::table;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{BenchCommand, BenchOptions, MeasureOptions, ReportOptions},
    exit::{Failure, print, say},
    signals::stop_on_signal,
};

/// Clocks of two machines are not the same to the millisecond, and a request takes its time.
const MIN_DELAY_MARGIN: Duration = Duration::from_millis(500);
const SIZES_DEFAULT: [u64; 2] = [200_000, 1_000_000];
const SIZES_QUICK: [u64; 1] = [20_000];
/// Parts of the names of settings whose values are secret.
const SECRET_MARKS: [&str; 4] = ["KEY", "SECRET", "PASSWORD", "URL"];

pub fn main(options: &BenchOptions) -> Result<(), Failure> {
    match &options.command {
        Some(BenchCommand::Report(options)) => combine(options),
        None => measure(&options.measure),
    }
}

fn measure(options: &MeasureOptions) -> Result<(), Failure> {
    let plan = Plan::parse(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::run(format!("no load can be made: {error}."), error))?;
    let record = runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signal(stop.clone()).map_err(|error| Failure::run(format!("signals cannot be received: {error}."), error))?;
        tokio::select! {
            record = plan.run() => record,
            // What is under way is dropped, and with it the service that was started for this.
            () = stop.cancelled() => Err(Failure::Run("stopped before it was done.".into())),
        }
    })?;
    if let Some(file) = given(&options.json) {
        write_json(&record, file)?;
    }
    if given(&options.json) != Some("-") {
        show(&record);
    }
    match given(&options.report) {
        Some(directory) => {
            write_report(std::slice::from_ref(&record), &Path::new(directory).join(format!("{}.md", bench::day(&record))))
        }
        None => Ok(()),
    }
}

/// What is asked for, with every option in its place.
struct Plan {
    campaign: Campaign,
    subject: Subject,
    receiver: IpAddr,
    lead: Duration,
}

enum Subject {
    Running(Target),
    Started(Wanted),
}

impl Plan {
    fn parse(options: &MeasureOptions) -> Result<Self, Failure> {
        let directory = given(&options.directory).map_or_else(std::env::temp_dir, PathBuf::from);
        let mut settings = parse_settings(&options.settings)?;
        if options.embedded {
            settings.insert("MIN_DELAY".to_owned(), "0s".to_owned());
            // All of the load comes from one address.
            settings.entry("CONNECTIONS_PER_ADDRESS_MAX".to_owned()).or_insert_with(|| "1024".to_owned());
        }
        let min_delay = given(&options.min_delay).map(|text| Span::parse("--min-delay", text)).transpose()?;
        let subject = match (options.embedded, given(&options.url)) {
            (true, _) => Subject::Started(wanted(options, &settings, &directory)?),
            (false, Some(url)) => {
                let api_key = given(&options.api_key).ok_or_else(|| refuse("API_KEY is required with --url."))?;
                Subject::Running(Target::parse(url, api_key).map_err(failure)?)
            }
            (false, None) => return Err(refuse("give --url for a running service, or --embedded to start one for this.")),
        };
        let lead = match (&subject, min_delay) {
            // Its smallest delay is set to nothing.
            (Subject::Started(_), _) => Duration::ZERO,
            (Subject::Running(_), None) => MIN_DELAY_MARGIN,
            (Subject::Running(_), Some(span)) => Duration::from_micros(span.as_micros().unsigned_abs()) + MIN_DELAY_MARGIN,
        };
        let receiver = parse_receiver(&options.receiver)?;
        let is_thrown_away = matches!(&subject, Subject::Started(wanted) if wanted.database_url.is_none());
        let shown = settings.into_iter().filter(|(name, _)| !SECRET_MARKS.iter().any(|mark| name.contains(mark)));
        let campaign = Campaign {
            workloads: parse_workloads(&options.workloads)?,
            runs: number("--runs", &options.runs)?.unwrap_or(1),
            timers: number("--count", &options.count)?,
            connections: number("--connections", &options.connections)?,
            sizes: parse_sizes(options)?,
            is_quick: options.quick,
            leaves_pile: options.leave || is_thrown_away,
            directory,
            settings: shown.collect(),
            note: given(&options.note).map(str::to_owned),
        };
        Ok(Self { campaign, subject, receiver, lead })
    }

    async fn run(&self) -> Result<Record, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        // Ends with this function, after everything that asks it.
        let (_started, target) = match &self.subject {
            Subject::Running(target) => (None, target.clone()),
            Subject::Started(wanted) => {
                let started = Embedded::start(wanted).await.map_err(failure)?;
                let target = started.target().clone();
                (Some(started), target)
            }
        };
        let session = Session::open(target, self.receiver, self.lead, clock).map_err(failure)?;
        let is_terminal = std::io::stderr().is_terminal();
        self.campaign.run(&session, &mut |note| tell(&note, is_terminal)).await.map_err(failure)
    }
}

fn wanted(options: &MeasureOptions, settings: &BTreeMap<String, String>, directory: &Path) -> Result<Wanted, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::run(format!("this program cannot be found again: {error}."), error))?;
    Ok(Wanted {
        program,
        directory: directory.to_path_buf(),
        database_url: given(&options.database_url).map(str::to_owned),
        api_key: format!("bench-{:032x}", rand::random::<u128>()),
        settings: settings.clone(),
    })
}

fn parse_workloads(names: &[String]) -> Result<Vec<Workload>, Failure> {
    if names.is_empty() {
        return Ok(Workload::ALL.to_vec());
    }
    names.iter().map(|name| name.parse().map_err(failure)).collect()
}

fn parse_settings(settings: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let pairs: Option<_> = settings.iter().map(pair).collect();
    pairs.ok_or_else(|| refuse("--set must be followed by a setting such as IN_FLIGHT_MAX=2048."))
}

fn parse_sizes(options: &MeasureOptions) -> Result<Vec<u64>, Failure> {
    match given(&options.sizes) {
        Some(list) => list.split(',').map(|size| whole("--sizes", size.trim())).collect(),
        None if options.quick => Ok(SIZES_QUICK.to_vec()),
        None => Ok(SIZES_DEFAULT.to_vec()),
    }
}

fn parse_receiver(text: &Option<String>) -> Result<IpAddr, Failure> {
    let Some(text) = given(text) else { return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
    text.parse().map_err(|_| refuse(format!("--receiver must be an address such as 192.0.2.1, not {text}.")))
}

fn number<T: FromStr + Default + PartialEq>(option: &str, text: &Option<String>) -> Result<Option<T>, Failure> {
    given(text).map(|text| whole(option, text)).transpose()
}

fn whole<T: FromStr + Default + PartialEq>(option: &str, text: &str) -> Result<T, Failure> {
    let parsed = text.parse().ok().filter(|number| *number != T::default());
    parsed.ok_or_else(|| refuse(format!("{option} must be a whole number above 0, not {text}.")))
}

/// An option that is empty counts as not given, as a setting does.
fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

/// On a terminal one line that changes, elsewhere a line for each result.
fn tell(note: &Note<'_>, is_terminal: bool) {
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

fn show(record: &Record) {
    let mut rows = vec![bench::RUN_HEAD.map(str::to_owned)];
    rows.extend(bench::run_rows(record));
    print(format_args!("\n{} {}\n\n{}", record.service.store, record.service.url, table(&rows)));
    let held = bench::held_rows(record);
    if !held.is_empty() {
        let mut rows = vec![bench::HELD_HEAD.map(str::to_owned)];
        rows.extend(held);
        print(format_args!("\n{}", table(&rows)));
    }
    print(format_args!(""));
    for ceiling in &record.ceilings {
        let (posts, connections) = (ceiling.posts_per_second, ceiling.connections);
        print(format_args!("Without a service: {posts:.0} posts/s over {connections} connections."));
    }
    if let Some(disk) = &record.disk {
        print(format_args!("Disk: 4 KiB overwritten and synced in p50 {:.3} ms, p99 {:.3} ms.", disk.write.p50, disk.write.p99));
    }
    for refusal in record.runs.iter().filter_map(|run| run.first_refusal.as_ref()) {
        print(format_args!("Refused: {refusal}"));
    }
}

fn write_json(record: &Record, file: &str) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(record).map_err(|error| Failure::run(format!("no JSON can be made: {error}."), error))?;
    if file == "-" {
        print(format_args!("{text}"));
        return Ok(());
    }
    write(Path::new(file), &text)
}

fn combine(options: &ReportOptions) -> Result<(), Failure> {
    let read = |file: &String| {
        let text = fs::read_to_string(file).map_err(|error| refuse(format!("{file} cannot be read: {error}.")))?;
        serde_json::from_str(&text).map_err(|error| refuse(format!("{file} was not written by `timer bench --json`: {error}.")))
    };
    let records: Vec<Record> = options.files.iter().map(read).collect::<Result<_, _>>()?;
    write_report(&records, Path::new(&options.out))
}

fn write_report(records: &[Record], page: &Path) -> Result<(), Failure> {
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

fn failure(failed: Failed) -> Failure {
    match failed {
        Failed::Option(sentence) => Failure::Configuration(sentence.into()),
        Failed::Run(sentence) => Failure::Run(sentence.into()),
    }
}

fn refuse(sentence: impl Display) -> Failure {
    Failure::Configuration(sentence.to_string().into())
}
