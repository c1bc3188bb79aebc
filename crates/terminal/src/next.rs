//! `timer next`: what is due when.

use clap::Args;
use client::{Json, PageQuery, Query};
use domain::Span;
use serde::Deserialize;

use crate::{
    ConnectionOptions, Context, Failure,
    connection::span,
    output::{COLUMNS, Format, OutputOptions, print},
    rows::Zone,
};

/// How many bars there are about.
const BARS: i64 = 20;
const BAR_CHARS: u64 = 40;
const SHOWN: u32 = 20;
const MINUTE_SECONDS: i64 = 60;

#[derive(Debug, Clone, Args)]
pub struct NextOptions {
    /// How far ahead
    #[arg(long, value_name = "DURATION", value_parser = span, default_value = "1h")]
    pub within: Span,
    /// Only timers of this namespace
    #[arg(long = "ns", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

#[derive(Deserialize)]
struct Due {
    buckets: Vec<Bucket>,
}

#[derive(Deserialize)]
struct Bucket {
    at: String,
    pending: u64,
}

pub async fn run(options: &NextOptions, context: &Context) -> Result<(), Failure> {
    let NextOptions { namespace, output, .. } = options;
    let client = options.connection.client(context)?;
    let now = context.clock.now();
    let step = (options.within.as_secs_up() / BARS / MINUTE_SECONDS).max(1);
    let query = Query::new()
        .with("from", now.to_string())
        .with("to", now.saturating_add(options.within).to_string())
        .with("step", format!("{step}m"))
        .with_some("namespace", namespace.clone());
    let data = client.read(&query.on("/stats/due")).await?;
    let mut filter = client::Filter::new().status("pending").with("due_to", now.saturating_add(options.within).to_string());
    if let Some(namespace) = namespace {
        filter = filter.namespace(namespace);
    }
    let page =
        PageQuery { sort: Some("execute_at".to_owned()), order: Some("asc".to_owned()), limit: Some(SHOWN), ..filter.into() };
    let next = client.timers().page(&page).await?.timers;
    if output.format(context) != Format::Table {
        return output.print_many(context, &next, &COLUMNS);
    }
    let Due { buckets } = data.parse()?;
    let buckets: Vec<_> = buckets.iter().map(|bucket| (bucket.at.as_str(), bucket.pending)).collect();
    print(format_args!("{}\n", histogram(&buckets, output.zone())))?;
    print_next(output, context, &next)
}

fn print_next(output: &OutputOptions, context: &Context, next: &[Json]) -> Result<(), Failure> {
    if next.is_empty() {
        return print(format_args!("Nothing is due in that time."));
    }
    output.print_many(context, next, &COLUMNS[..6])
}

/// A bar for each span of time.
fn histogram(buckets: &[(&str, u64)], zone: Zone) -> String {
    let most = buckets.iter().map(|(_, pending)| *pending).max().unwrap_or_default().max(1);
    let rows: Vec<_> = buckets
        .iter()
        .map(|(at, pending)| {
            let shown = chrono::DateTime::parse_from_rfc3339(at).map_or((*at).to_owned(), |at| zone.show(at.to_utc()));
            let chars = (pending * BAR_CHARS).div_ceil(most);
            [shown, pending.to_string(), "█".repeat(usize::try_from(chars).unwrap_or_default())]
        })
        .collect();
    crate::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_the_most() {
        let shown = histogram(&[("2030-01-31T12:00:00Z", 1), ("2030-01-31T12:01:00Z", 4)], Zone::Utc);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], format!("2030-01-31 12:00:00.000Z  1  {}", "█".repeat(10)));
        assert_eq!(lines[1], format!("2030-01-31 12:01:00.000Z  4  {}", "█".repeat(40)));
    }
}
