//! `timer cancel`, `fire`, `retry`, `pause` and `resume`: by id, or everything that matches a filter.

use std::time::Duration;

use clap::Args;
use client::{Bulk, BulkPreview, Bulked, Client, Filter, Json};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::{
    ConnectionOptions, Context, Failure,
    filter::filter,
    output::{COLUMNS, OutputOptions, print, say},
    question::confirmed,
    read::reference,
};

const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Which timers are changed.
#[derive(Debug, Clone, Args)]
pub struct Selection {
    /// The ids of the timers, or their keys
    #[arg(value_name = "ID|KEY", required_unless_present = "filter", conflicts_with = "filter")]
    pub timers: Vec<String>,
    /// The namespace of the keys
    #[arg(long = "ns", value_name = "NAMESPACE", conflicts_with = "filter")]
    pub namespace: Option<String>,
    /// Every timer that matches, in the words of `timer list`
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Show what matches, and change nothing
    #[arg(long, requires = "filter")]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short, long, requires = "filter")]
    pub yes: bool,
    /// Change nothing if more match than this; what matched when it was shown and a tenth more, unless given
    #[arg(long, value_name = "COUNT", requires = "filter")]
    pub expected_max: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct ChangeOptions {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(action: &str, options: &ChangeOptions, context: &Context) -> Result<(), Failure> {
    let ChangeOptions { selection, output, connection } = options;
    let client = connection.client(context)?;
    if let Some(words) = &selection.filter {
        let filter = filter(std::slice::from_ref(words), context)?;
        let bulk = Bulk { action: action.to_owned(), filter, set: None };
        return many(&client, &bulk, selection, output, context).await;
    }
    let mut changed = Vec::new();
    let mut failure = None;
    for timer in &selection.timers {
        match one(&client, action, timer, selection.namespace.as_deref()).await {
            Ok(timer) => changed.push(timer),
            Err(error) => failure = Some(note(&error, timer, selection.timers.len(), output)),
        }
    }
    match changed.as_slice() {
        [] => {}
        [timer] => output.print_changed(context, timer)?,
        timers => output.print_many(context, timers, &COLUMNS[..6])?,
    }
    failure.map_or(Ok(()), Err)
}

/// What went wrong with one of several: told at once, and the last of them decides the exit code.
pub fn note(error: &client::Error, timer: &str, of: usize, output: &OutputOptions) -> Failure {
    let failure = Failure::from(error.clone()).in_json(output.is_json());
    if of > 1 {
        say(format_args!("timer: {timer}: {}.", failure.sentence()));
        return Failure::new(failure.exit, "");
    }
    failure
}

async fn one(client: &Client, action: &str, timer: &str, namespace: Option<&str>) -> Result<Json, client::Error> {
    client.timers().act_raw(&reference(timer, namespace), action).await
}

/// Shows what matches, asks, changes it, and follows an operation to its end.
pub async fn many(
    client: &Client,
    bulk: &Bulk,
    selection: &Selection,
    output: &OutputOptions,
    context: &Context,
) -> Result<(), Failure> {
    let failed = |error: client::Error| Failure::from(error).in_json(output.is_json());
    if bulk.filter == Filter::new() {
        return Err(Failure::usage("--filter must name a condition: nothing was changed"));
    }
    let preview = client.timers().bulk_preview_raw(bulk).await.map_err(failed)?;
    let BulkPreview { matched, matched_is_estimate, examples, .. } = preview.parse()?;
    if selection.dry_run {
        if output.is_json() {
            return print(format_args!("{preview}"));
        }
        say(format_args!("{}", counted(matched, matched_is_estimate)));
        return output.print_many(context, &examples, &COLUMNS[..6]);
    }
    if !selection.yes {
        say(format_args!("{}", crate::table(&example_rows(&examples)?)));
        let question = format!("{} {}?", capitalized(&bulk.action), counted(matched, matched_is_estimate));
        confirmed(context, &question)?;
    }
    let expected_max = selection.expected_max.unwrap_or(matched + matched.div_ceil(10));
    let result = match client.timers().bulk(bulk, expected_max).await.map_err(failed)? {
        Bulked::Done { changed, skipped } => json!({"changed": changed, "skipped": skipped}),
        Bulked::Started(operation) => follow(client, &operation.id, matched, context).await?,
    };
    match output.format(context) {
        crate::output::Format::Table => print(format_args!("{} changed, {} skipped.", result["changed"], result["skipped"])),
        _ => print(format_args!("{result}")),
    }
}

fn example_rows(examples: &[Json]) -> Result<Vec<Vec<String>>, Failure> {
    let columns = &COLUMNS[..6];
    let mut rows = vec![columns.iter().map(|name| crate::rows::heading(name)).collect()];
    for example in examples {
        let value: Value = example.parse()?;
        rows.push(columns.iter().map(|name| crate::rows::cell(name, &value[name], crate::rows::Zone::Local)).collect());
    }
    Ok(rows)
}

fn counted(matched: u64, is_estimate: bool) -> String {
    let about = if is_estimate { "about " } else { "" };
    if matched == 1 { "1 timer".to_owned() } else { format!("{about}{matched} timers") }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Waits for the end of an operation.
async fn follow(client: &Client, id: &str, matched: u64, context: &Context) -> Result<Value, Failure> {
    let bar = progress(context, matched);
    loop {
        let operation: Value = client.read(&format!("/operations/{id}")).await?.parse()?;
        let done: u64 = ["changed", "skipped", "errors"].iter().filter_map(|name| operation[name].as_u64()).sum();
        bar.set_position(done);
        match operation["state"].as_str() {
            Some("running") => tokio::time::sleep(LOOK_INTERVAL).await,
            Some("done") => {
                bar.finish_and_clear();
                return Ok(operation);
            }
            state => {
                bar.abandon();
                let why = operation["error"].as_str().unwrap_or_default();
                return Err(Failure::unexpected(format!("operation {id} is {}: {why}", state.unwrap_or("lost"))));
            }
        }
    }
}

/// A bar on a terminal, and nothing elsewhere.
pub fn progress(context: &Context, length: u64) -> ProgressBar {
    if !context.surroundings.is_interactive {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
