//! `timer bench`: puts a service under load, and shows how it does. The load itself is the crate `bench`.

mod show;

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

use bench::{Campaign, Comparison, Embedded, Failed, Pairs, Record, Session, Target, Wanted, Workload};
use domain::{Clock, Span, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{BenchCommand, BenchOptions, MeasureOptions, ReportOptions},
    exit::Failure,
    rlimit,
    signals::stop_on_signal,
};
use show::{show, show_comparison, tell, write_json, write_report};

/// Clocks of two machines are not the same to the millisecond, and a request takes its time.
const MIN_DELAY_MARGIN: Duration = Duration::from_millis(500);
const SIZES_DEFAULT: [u64; 2] = [200_000, 1_000_000];
const SIZES_QUICK: [u64; 1] = [20_000];
const PENDING_DEFAULT: u64 = 1_000_000;
const PENDING_QUICK: u64 = 20_000;
/// Stands for all workloads that look for cliffs.
const CLIFFS: &str = "cliffs";
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
    // Each receiver and each call is an open file of this process, too.
    rlimit::allow_many();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::run(format!("no load can be made: {error}."), error))?;
    let results = runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signal(stop.clone()).map_err(|error| Failure::run(format!("signals cannot be received: {error}."), error))?;
        tokio::select! {
            results = plan.run() => results,
            // What is under way is dropped, and with it the service that was started for this.
            () = stop.cancelled() => Err(Failure::Run("stopped before it was done.".into())),
        }
    })?;
    match results {
        Results::Measured(record) => hand_over_record(&record, options),
        Results::Compared(comparison) => hand_over(comparison.as_ref(), options, show_comparison),
    }
}

fn hand_over_record(record: &Record, options: &MeasureOptions) -> Result<(), Failure> {
    hand_over(record, options, show)?;
    match given(&options.report) {
        Some(directory) => {
            write_report(std::slice::from_ref(record), &Path::new(directory).join(format!("{}.md", bench::day(record))))
        }
        None => Ok(()),
    }
}

fn hand_over<T: serde::Serialize>(results: &T, options: &MeasureOptions, show: fn(&T)) -> Result<(), Failure> {
    if let Some(file) = given(&options.json) {
        write_json(results, file)?;
    }
    if given(&options.json) != Some("-") {
        show(results);
    }
    Ok(())
}

enum Results {
    Measured(Box<Record>),
    Compared(Box<Comparison>),
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
    /// Two builds in turns.
    Paired {
        ours: Wanted,
        other: Wanted,
    },
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
            (true, _) => started(options, &settings, &directory)?,
            _ if given(&options.against).is_some() => {
                return Err(refuse("--against needs --embedded: both builds are started here."));
            }
            (false, Some(url)) => {
                let api_key = given(&options.api_key).ok_or_else(|| refuse("API_KEY is required with --url."))?;
                Subject::Running(Target::parse(url, api_key).map_err(failure)?)
            }
            (false, None) => return Err(refuse("give --url for a running service, or --embedded to start one for this.")),
        };
        let lead = match (&subject, min_delay) {
            // Its smallest delay is set to nothing.
            (Subject::Started(_) | Subject::Paired { .. }, _) => Duration::ZERO,
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
            rate: number("--rate", &options.rate)?,
            pending: number("--pending", &options.pending)?.unwrap_or(if options.quick {
                PENDING_QUICK
            } else {
                PENDING_DEFAULT
            }),
            sizes: parse_sizes(options)?,
            is_quick: options.quick,
            leaves_pile: options.leave || is_thrown_away,
            directory,
            settings: shown.collect(),
            note: given(&options.note).map(str::to_owned),
        };
        Ok(Self { campaign, subject, receiver, lead })
    }

    async fn run(self) -> Result<Results, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let is_terminal = std::io::stderr().is_terminal();
        let tell = &mut |note: bench::Note<'_>| tell(&note, is_terminal);
        // Ends with this function, after everything that asks it.
        let (_started, target) = match self.subject {
            Subject::Running(target) => (None, target),
            Subject::Started(wanted) => {
                let started = Embedded::start(&wanted).await.map_err(failure)?;
                let target = started.target().clone();
                (Some(started), target)
            }
            Subject::Paired { ours, other } => {
                let pairs = Pairs { campaign: self.campaign, ours, other, receiver: self.receiver };
                let comparison = pairs.run(&clock, tell).await.map_err(failure)?;
                return Ok(Results::Compared(Box::new(comparison)));
            }
        };
        let destinations = self.campaign.destinations();
        let session = Session::open(target, self.receiver, destinations, self.lead, clock).map_err(failure)?;
        let record = self.campaign.run(&session, tell).await.map_err(failure)?;
        Ok(Results::Measured(Box::new(record)))
    }
}

fn started(options: &MeasureOptions, settings: &BTreeMap<String, String>, directory: &Path) -> Result<Subject, Failure> {
    let ours = wanted(options, settings, directory)?;
    let Some(program) = given(&options.against) else { return Ok(Subject::Started(ours)) };
    if given(&options.report).is_some() {
        return Err(refuse("--report makes a page of one build: leave it out with --against."));
    }
    if ours.database_url.is_some() && ours.before.is_none() {
        return Err(refuse("--against with --database-url needs --before, a command that empties the database before each run."));
    }
    let program = Path::new(program).canonicalize();
    let program = program.map_err(|error| refuse(format!("the program for --against cannot be found: {error}.")))?;
    let other = Wanted { program, ..wanted(options, settings, directory)? };
    Ok(Subject::Paired { ours, other })
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
        before: given(&options.before).map(str::to_owned),
    })
}

fn parse_workloads(names: &[String]) -> Result<Vec<Workload>, Failure> {
    if names.is_empty() {
        return Ok(Workload::USUAL.to_vec());
    }
    let mut workloads = Vec::new();
    for name in names {
        if name.eq_ignore_ascii_case(CLIFFS) {
            workloads.extend(Workload::CLIFFS);
        } else {
            workloads.push(name.parse().map_err(failure)?);
        }
    }
    Ok(workloads)
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

fn combine(options: &ReportOptions) -> Result<(), Failure> {
    let read = |file: &String| {
        let text = fs::read_to_string(file).map_err(|error| refuse(format!("{file} cannot be read: {error}.")))?;
        serde_json::from_str(&text).map_err(|error| refuse(format!("{file} was not written by `timer bench --json`: {error}.")))
    };
    let records: Vec<Record> = options.files.iter().map(read).collect::<Result<_, _>>()?;
    write_report(&records, Path::new(&options.out))
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
