//! `timer create`.

use clap::Args;
use client::{Callback, Json, NewTimer, RetryPolicy, TimerRef};
use domain::{Span, Timestamp};

use crate::{
    ConnectionOptions, Context, Failure,
    connection::span,
    output::{OutputOptions, print},
    request, watch,
};

#[derive(Debug, Clone, Args)]
pub struct CreateOptions {
    /// The URL to call, or nats:SUBJECT
    #[arg(value_name = "URL|nats:SUBJECT")]
    pub target: String,
    /// How long from now: 90s, 1h30m, PT15M
    #[arg(long = "in", value_name = "DURATION", value_parser = span, required_unless_present = "at", conflicts_with = "at")]
    pub delay: Option<Span>,
    /// When, in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    pub at: Option<Timestamp>,
    /// What is sent: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub payload: Option<String>,
    /// A header of the call; give it again for each further one
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = request::header)]
    pub headers: Vec<(String, String)>,
    /// Your own id of the timer: creating it again is the same timer
    #[arg(long)]
    pub key: Option<String>,
    /// An id that you made, a UUID of version 7
    #[arg(long, conflicts_with = "key")]
    pub id: Option<String>,
    /// The namespace of the timer
    #[arg(long = "ns", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The group of the timer
    #[arg(long)]
    pub group: Option<String>,
    /// What a different request with the same key does: reject, replace, keep, postpone, earliest or latest
    #[arg(long, value_name = "WHAT", requires = "key")]
    pub on_conflict: Option<String>,
    /// How often a failed call is tried again
    #[arg(long, value_name = "COUNT")]
    pub retries: Option<u32>,
    /// The first and the longest pause between attempts, such as 30s..10m
    #[arg(long, value_name = "FIRST..LONGEST", value_parser = request::backoff)]
    pub backoff: Option<(Option<String>, Option<String>)>,
    /// How long the receiver may take
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub call_timeout: Option<Span>,
    /// No attempt starts later than this after the due time
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub expires_after: Option<Span>,
    /// A member of the metadata; give it again for each further one
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = request::pair)]
    pub metadata: Vec<(String, String)>,
    /// Carried to the call and the logs
    #[arg(long, value_name = "ID")]
    pub correlation_id: Option<String>,
    /// at_least_once or at_most_once
    #[arg(long, value_name = "HOW")]
    pub delivery: Option<String>,
    /// A URL that is called when the timer has completed
    #[arg(long, value_name = "URL")]
    pub on_success: Option<String>,
    /// A URL that is called when the timer has failed or expired
    #[arg(long, value_name = "URL")]
    pub on_failure: Option<String>,
    /// Print the request, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until the timer has ended: exit code 0 if it completed, 8 if --timeout ran out, 9 if it ended otherwise
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(options: &CreateOptions, context: &Context) -> Result<(), Failure> {
    let body = body(options)?;
    if options.dry_run {
        return print(format_args!("{body}"));
    }
    let client = options.connection.client(context)?;
    let answer = client.timers().create_raw(&body).await;
    let answer = answer.map_err(|error| Failure::from(error).in_json(options.output.is_json()))?;
    options.output.print_changed(context, &answer.data)?;
    if options.wait {
        let timer: client::Timer = answer.data.parse()?;
        return watch::to_its_end(&client, &TimerRef::Id(timer.id), &options.connection).await;
    }
    Ok(())
}

/// The body of the request, with an id where there is no key, so that it can be repeated.
fn body(options: &CreateOptions) -> Result<Json, Failure> {
    let mut callback = match options.target.strip_prefix("nats:") {
        Some(subject) => Callback::nats(subject),
        None => Callback::http(&options.target),
    };
    for (name, value) in &options.headers {
        callback = callback.header(name, value);
    }
    if let Some(text) = &options.payload {
        callback = callback.payload(request::payload(text)?);
    }
    if let Some(timeout) = options.call_timeout {
        callback = callback.timeout(timeout.as_duration());
    }
    let timer = NewTimer::new(callback);
    let some = |timer: NewTimer, value: &Option<String>, set: fn(NewTimer, &str) -> NewTimer| match value {
        Some(value) => set(timer, value),
        None => timer,
    };
    let timer = match (options.delay, options.at) {
        (Some(delay), _) => timer.delay(delay.to_string()),
        (None, Some(at)) => timer.execute_at(at.to_string()),
        (None, None) => return Err(Failure::usage("--in or --at is required")),
    };
    let timer = some(timer, &options.key, |timer, key| timer.key(key));
    let timer = some(timer, &options.id, |timer, id| timer.id(id));
    let timer = some(timer, &options.namespace, |timer, namespace| timer.namespace(namespace));
    let timer = some(timer, &options.group, |timer, group| timer.group(group));
    let timer = some(timer, &options.on_conflict, |timer, what| timer.on_conflict(what));
    let timer = some(timer, &options.correlation_id, |timer, id| timer.correlation_id(id));
    let timer = some(timer, &options.delivery, |timer, how| timer.delivery(how));
    let timer = some(timer, &options.expires_after.map(|span| span.to_string()), |timer, span| timer.expires_after(span));
    let timer = some(timer, &options.on_success, |timer, url| timer.on_success(Callback::http(url)));
    let mut timer = some(timer, &options.on_failure, |timer, url| timer.on_failure(Callback::http(url)));
    if !options.metadata.is_empty() {
        timer = timer.metadata(Json::of(&request::object(&options.metadata))?);
    }
    if options.retries.is_some() || options.backoff.is_some() {
        let (initial_interval, max_interval) = options.backoff.clone().unwrap_or_default();
        timer =
            timer.retry(RetryPolicy { max_retries: options.retries, initial_interval, max_interval, ..RetryPolicy::default() });
    }
    Ok(timer.body()?)
}
