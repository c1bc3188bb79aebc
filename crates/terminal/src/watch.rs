//! `timer watch`: what happens, as lines, or one timer to its end.

use std::time::Duration;

use clap::Args;
use client::{Client, Event, EventQuery, Json, Status, TimerRef};
use tokio::time::Instant;

use crate::{
    ConnectionOptions, Context, Failure,
    failure::{ENDED_OTHERWISE, OUT_OF_TIME},
    filter::filter,
    output::{Format, OutputOptions, print},
};

const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    /// The id of a timer, which is followed to its end, or a filter in the words of `timer list`
    #[arg(value_name = "ID|FILTER")]
    pub what: Vec<String>,
    /// Which events: created, changed, attempt, finished; all unless given
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub types: Vec<String>,
    /// Go on after the event with this id
    #[arg(long, value_name = "EVENT")]
    pub after: Option<String>,
    /// End after so many events
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(options: &WatchOptions, context: &Context) -> Result<(), Failure> {
    let client = options.connection.client(context)?;
    if let [one] = options.what.as_slice()
        && uuid::Uuid::try_parse(one).is_ok()
    {
        return to_its_end(&client, &TimerRef::Id(one.clone()), &options.connection).await;
    }
    let types = (!options.types.is_empty()).then(|| options.types.join(","));
    let query = EventQuery { filter: filter(&options.what, context)?, types, after: options.after.clone() };
    let mut events = client.events(query);
    let until = Instant::now() + options.connection.wait_timeout();
    let mut left = options.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let Ok(next) = tokio::time::timeout_at(until, events.next_raw()).await else {
            return Err(Failure::new(OUT_OF_TIME, "the time is over"));
        };
        let (event, json) = next.map_err(|error| Failure::from(error).in_json(options.output.is_json()))?;
        if event.kind != "position" {
            show(options, context, &event, &json)?;
            left -= 1;
        }
    }
    Ok(())
}

fn show(options: &WatchOptions, context: &Context, event: &Event, json: &Json) -> Result<(), Failure> {
    if options.output.format(context) != Format::Table {
        return print(format_args!("{json}"));
    }
    let Some(timer) = &event.timer else { return Ok(()) };
    let at = event.at.map(|at| options.output.zone().show(at)).unwrap_or_default();
    let key = timer.key.as_deref().unwrap_or_default();
    let more = event.attempt.as_ref().map(|attempt| {
        let status = attempt.status.map(|status| status.to_string()).unwrap_or_default();
        format!(" attempt {} {} {status}", attempt.number, attempt.outcome)
    });
    let (kind, status, more) = (&event.kind, timer.status.to_string(), more.unwrap_or_default());
    let line = format!("{at}  {kind:<8}  {status:<9}  {}  {key}{more}", timer.id);
    print(format_args!("{}", line.trim_end()))
}

/// Waits until a timer has ended: an error unless it has completed.
pub async fn to_its_end(client: &Client, timer: &TimerRef, connection: &ConnectionOptions) -> Result<(), Failure> {
    let until = Instant::now() + connection.wait_timeout();
    let mut pause = LOOK_INTERVAL_MIN;
    loop {
        let detail = client.timers().get(timer).await?;
        match detail.timer.status {
            Status::Completed => return Ok(()),
            status if status.has_ended() => {
                let why = detail.more.last_error.map(|error| format!(": {error}")).unwrap_or_default();
                return Err(Failure::new(ENDED_OTHERWISE, format!("the timer is {status}{why}")));
            }
            status if Instant::now() + pause > until => {
                return Err(Failure::new(OUT_OF_TIME, format!("the time is over, and the timer is {status}")));
            }
            _ => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(LOOK_INTERVAL_MAX);
    }
}
