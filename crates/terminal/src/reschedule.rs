//! `timer reschedule`: other due times, by id, or for everything that matches a filter.

use clap::{ArgGroup, Args};
use client::{Bulk, Client, Json};
use domain::{Span, Timestamp};
use serde_json::json;

use crate::{
    ConnectionOptions, Context, Failure,
    change::{Selection, many, note},
    filter::filter,
    output::{COLUMNS, OutputOptions},
    read::reference,
    request,
};

#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("when").args(["to", "by", "spread"]).required(true))]
pub struct RescheduleOptions {
    #[command(flatten)]
    pub selection: Selection,
    /// All at this time, in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    pub to: Option<Timestamp>,
    /// So much later or earlier than each is due, such as +1h or -10m
    #[arg(long, value_name = "SHIFT", allow_hyphen_values = true, value_parser = shift)]
    pub by: Option<String>,
    /// Evenly over this time from now
    #[arg(long, value_name = "DURATION", value_parser = crate::connection::span, requires = "filter")]
    pub spread: Option<Span>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

fn shift(text: &str) -> Result<String, String> {
    let length = text.strip_prefix(['+', '-']).ok_or("must begin with + or -, such as +1h")?;
    crate::connection::span(length).map(|_| text.to_owned())
}

pub async fn run(options: &RescheduleOptions, context: &Context) -> Result<(), Failure> {
    let RescheduleOptions { selection, output, connection, .. } = options;
    let client = connection.client(context)?;
    if let Some(words) = &selection.filter {
        let set = match (&options.to, &options.by, &options.spread) {
            (Some(to), ..) => json!({"execute_at": to.to_string()}),
            (_, Some(by), _) => json!({"shift": by}),
            (_, _, spread) => json!({"spread": spread.map(|span| span.to_string())}),
        };
        let filter = filter(std::slice::from_ref(words), context)?;
        let bulk = Bulk { action: "reschedule".to_owned(), filter, set: Some(set) };
        return many(&client, &bulk, selection, output, context).await;
    }
    let mut changed = Vec::new();
    let mut failure = None;
    for timer in &selection.timers {
        match one(&client, timer, options).await {
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

async fn one(client: &Client, timer: &str, options: &RescheduleOptions) -> Result<Json, client::Error> {
    let reference = reference(timer, options.selection.namespace.as_deref());
    let timers = client.timers();
    if let Some(to) = &options.to {
        return timers.update_raw(&reference, &due_at(*to)?).await;
    }
    let detail = timers.get(&reference).await?.timer;
    let due = Timestamp::from_micros(detail.execute_at.timestamp_micros());
    let due = shifted(due, options.by.as_deref().unwrap_or_default());
    timers.if_revision(detail.revision).update_raw(&reference, &due_at(due)?).await
}

fn due_at(due: Timestamp) -> Result<Json, client::Error> {
    Json::of(&json!({"execute_at": due.to_string()}))
}

/// The text was checked when it was parsed.
fn shifted(due: Timestamp, by: &str) -> Timestamp {
    let span = Span::parse("by", by.trim_start_matches(['+', '-'])).unwrap_or(Span::ZERO);
    if by.starts_with('-') { due.saturating_sub(span) } else { due.saturating_add(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_signed() {
        let due = Timestamp::parse("due", "2030-01-31T12:00:00Z").unwrap();
        assert_eq!(shifted(due, "+1h").to_string(), "2030-01-31T13:00:00Z");
        assert_eq!(shifted(due, "-30m").to_string(), "2030-01-31T11:30:00Z");
        assert!(shift("1h").is_err() && shift("+soon").is_err() && shift("+1h").is_ok());
    }
}
