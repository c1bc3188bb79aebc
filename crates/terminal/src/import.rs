//! `timer import`: registers the timers of a file that `timer export` wrote. Each keeps its id or key, so that an import that was
//! interrupted is simply started again.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use client::{Client, Json, Status};
use serde_json::json;
use tokio::time::Instant;

use crate::{ConnectionOptions, Context, Failure, change::progress, output::say};

const STANDARD_INPUT: &str = "-";
const BATCH_TIMERS_MAX: usize = 1_000;
/// Below what the service takes at once, 8 MiB.
const BATCH_BYTES_MAX: usize = 6 * 1024 * 1024;
/// A batch of large payloads takes its time.
const BATCH_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Args)]
pub struct ImportOptions {
    /// The file, one timer a line, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Register nothing; say what would be
    #[arg(long)]
    pub dry_run: bool,
    /// At most so many timers a second
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    registered: u64,
    /// They were there already, with the same content.
    there: u64,
    /// They have ended.
    skipped: u64,
    rejected: u64,
}

/// What a line is.
#[derive(Debug, PartialEq)]
enum Line {
    Timer(Import),
    /// It has ended.
    Skipped,
    Wrong(String),
}

/// A timer that is to be registered.
#[derive(Debug, Clone, PartialEq)]
struct Import {
    /// The line, for the file of rejects.
    line: String,
    body: Json,
    is_paused: bool,
}

pub async fn run(options: &ImportOptions, context: &Context) -> Result<(), Failure> {
    let path = &options.file;
    let cannot_be_read = |error: io::Error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
    let (input, length): (Box<dyn BufRead>, u64) = if path == Path::new(STANDARD_INPUT) {
        (Box::new(BufReader::new(io::stdin())), 0)
    } else {
        let file = File::open(path).map_err(cannot_be_read)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(BufReader::new(file)), length)
    };
    let bar = progress(context, length);
    let mut importing = Importing {
        client: (!options.dry_run).then(|| options.connection.client(context)).transpose()?,
        rejects: Rejects { path: rejects_of(path), file: None },
        counts: Counts::default(),
        batch: Vec::new(),
        bytes: 0,
        rate: options.rate,
    };
    let mut read = 0;
    for line in input.lines() {
        let line = line.map_err(cannot_be_read)?;
        read += line.len() as u64 + 1;
        importing.take(line).await?;
        bar.set_position(read);
    }
    importing.flush().await?;
    bar.finish_and_clear();
    let Importing { counts, mut rejects, .. } = importing;
    rejects.finish()?;
    report(counts, options.dry_run, &rejects)
}

fn report(counts: Counts, is_dry_run: bool, rejects: &Rejects) -> Result<(), Failure> {
    let Counts { registered, there, skipped, rejected } = counts;
    let would = if is_dry_run { "would be " } else { "" };
    say(format_args!("{registered} timers {would}registered, {there} were there, {skipped} have ended and were skipped."));
    if rejected > 0 {
        let sentence = format!("{rejected} timers were refused: see {}", rejects.path.display());
        return Err(Failure::usage(sentence));
    }
    Ok(())
}

struct Importing {
    /// `None`: a dry run.
    client: Option<Client>,
    rejects: Rejects,
    counts: Counts,
    batch: Vec<Import>,
    bytes: usize,
    rate: Option<u32>,
}

impl Importing {
    async fn take(&mut self, line: String) -> Result<(), Failure> {
        if line.trim().is_empty() {
            return Ok(());
        }
        match read(line.clone()) {
            Line::Skipped => self.counts.skipped += 1,
            Line::Wrong(message) => self.reject(&line, &message)?,
            Line::Timer(import) => {
                let bytes = import.body.as_str().len() + 1;
                if self.batch.len() >= BATCH_TIMERS_MAX || self.bytes + bytes > BATCH_BYTES_MAX {
                    self.flush().await?;
                }
                self.bytes += bytes;
                self.batch.push(import);
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let (batch, begun) = (std::mem::take(&mut self.batch), Instant::now());
        self.bytes = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let Some(client) = self.client.clone() else {
            self.counts.registered += batch.len() as u64;
            return Ok(());
        };
        let bodies: Vec<_> = batch.iter().map(|import| import.body.clone()).collect();
        let results = client.timers().create_many_within(&bodies, BATCH_TIME).await?;
        for (import, result) in batch.iter().zip(results) {
            let Some(timer) = result.timer else {
                self.reject(&import.line, &result.message)?;
                continue;
            };
            // One that was interrupted may have registered the timer, and not paused it.
            if import.is_paused && timer.status == Status::Pending {
                client.timers().pause(&timer.id, None).await?;
            }
            match result.status {
                201 => self.counts.registered += 1,
                _ => self.counts.there += 1,
            }
        }
        if let Some(rate) = self.rate {
            let time = Duration::from_secs_f64(batch.len() as f64 / f64::from(rate));
            tokio::time::sleep_until(begun + time).await;
        }
        Ok(())
    }

    fn reject(&mut self, line: &str, message: &str) -> Result<(), Failure> {
        self.counts.rejected += 1;
        self.rejects.add(line, message)
    }
}

/// The file of lines that were refused, which is there if there are any.
struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

fn rejects_of(path: &Path) -> PathBuf {
    let mut name = if path == Path::new(STANDARD_INPUT) { "import".into() } else { path.as_os_str().to_owned() };
    name.push(".rejects.ndjson");
    PathBuf::from(name)
}

impl Rejects {
    fn add(&mut self, line: &str, message: &str) -> Result<(), Failure> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        // A line that is not JSON is kept as a text.
        let timer = Json::text(line).or_else(|_| Json::of(line))?;
        let message = json!(message);
        Ok(writeln!(file, r#"{{"message":{message},"timer":{timer}}}"#)?)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.file.as_mut().map_or(Ok(()), |file| Ok(file.flush()?))
    }
}

/// The members of an export that only an answer has. Every other member goes into the request as it is: a field that this program does not
/// know is taken or refused by the service, and never lost on the way.
const ANSWER_ONLY: [&str; 11] = [
    "status",
    "callback_type",
    "time_left",
    "executed_at",
    "created_at",
    "updated_at",
    "revision",
    "attempt",
    "last_error",
    "paused_at",
    "pause_note",
];
/// The members that are callbacks, and their names in a request.
const CALLBACKS: [(&str, &str); 3] =
    [("callback_config", "callback"), ("on_success", "on_success"), ("on_failure", "on_failure")];

/// From a line of an export to a request. Members keep their text.
fn read(line: String) -> Line {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, Json>>(&line) else {
        return Line::Wrong("is not a JSON object".to_owned());
    };
    let some = |name: &str| members.get(name).filter(|value| value.as_str() != "null");
    let text = |name: &str| some(name).and_then(|value| value.parse::<String>().ok());
    match text("status").as_deref() {
        Some("pending" | "paused") => {}
        Some("executing" | "completed" | "failed" | "canceled" | "expired") => return Line::Skipped,
        _ => return Line::Wrong("has no status".to_owned()),
    }
    if some("callback_config").is_none() {
        return Line::Wrong("has no callback_config: export it as NDJSON".to_owned());
    }
    // Of each of these pairs, a request takes one.
    let left_out = [("key", "id"), ("expires_after", "expires_at")].map(|(first, second)| some(first).map(|_| second));
    let kind = text("callback_type").unwrap_or_default();
    let is_taken = |name: &str| !ANSWER_ONLY.contains(&name) && !left_out.contains(&Some(name));
    let body: Vec<_> = members
        .iter()
        .filter(|(name, value)| is_taken(name) && value.as_str() != "null")
        .map(|(name, value)| match CALLBACKS.into_iter().find(|(exported, _)| exported == name) {
            Some((_, requested)) => format!("{}:{}", json!(requested), typed(value, &kind)),
            None => format!("{}:{value}", json!(name)),
        })
        .collect();
    match Json::text(format!("{{{}}}", body.join(","))) {
        Ok(body) => Line::Timer(Import { line, body, is_paused: text("status").as_deref() == Some("paused") }),
        Err(error) => Line::Wrong(error.to_string()),
    }
}

/// A callback names its type, in a request.
fn typed(config: &Json, kind: &str) -> String {
    let has_type = config.parse::<BTreeMap<String, Json>>().is_ok_and(|members| members.contains_key("type"));
    if has_type {
        return config.to_string();
    }
    let kind = if config.as_str().contains("\"topic\"") && !config.as_str().contains("\"url\"") { "nats" } else { kind };
    let rest = config.as_str().trim_start().trim_start_matches('{');
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"type\":{}{comma}{rest}", json!(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(line: &str) -> String {
        match read(line.to_owned()) {
            Line::Timer(import) => import.body.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_becomes_a_request_and_keeps_its_texts() {
        let line = r#"{"id":"i","namespace":"n","key":null,"group":"g","status":"pending","callback_type":"http","execute_at":"2030-01-31T12:00:00Z","time_left":9,"revision":3,"callback_config":{"url":"http://a","payload":{"n": 1.10}},"metadata":[ 1 ],"expires_at":"2030-01-31T13:00:00Z","expires_after":"1h","attempt":0}"#;
        assert_eq!(
            body(line),
            r#"{"callback":{"type":"http","url":"http://a","payload":{"n": 1.10}},"execute_at":"2030-01-31T12:00:00Z","expires_after":"1h","group":"g","id":"i","metadata":[ 1 ],"namespace":"n"}"#
        );
        let keyed = line.replace("\"key\":null", "\"key\":\"k\"");
        assert!(body(&keyed).contains("\"key\":\"k\"") && !body(&keyed).contains("\"id\""));
        assert_eq!(read(line.replace("pending", "completed")), Line::Skipped);
        assert!(matches!(read("{".to_owned()), Line::Wrong(_)) && matches!(read("{}".to_owned()), Line::Wrong(_)));
    }

    #[test]
    fn a_field_that_this_program_does_not_know_goes_into_the_request() {
        let line = r#"{"id":"i","status":"paused","paused_at":"2030-01-31T12:00:00Z","pause_note":"x","callback_type":"http","execute_at":"2030-01-31T12:00:00Z","callback_config":{"url":"http://a"},"on_failure":{"topic":"t"},"on_success":null,"last_error":null,"new \"field\"":{"a": 1.0}}"#;
        assert_eq!(
            body(line),
            r#"{"callback":{"type":"http","url":"http://a"},"execute_at":"2030-01-31T12:00:00Z","id":"i","new \"field\"":{"a": 1.0},"on_failure":{"type":"nats","topic":"t"}}"#
        );
    }
}
