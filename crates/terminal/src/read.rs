//! `timer get`, `list` and `attempts`.

use clap::Args;
use client::{Json, PageQuery, TimerRef};
use futures_util::{StreamExt, TryStreamExt};
use serde::Deserialize;

use crate::{
    ConnectionOptions, Context, Failure,
    filter::filter,
    output::{COLUMNS, Format, OutputOptions, print},
};

const ATTEMPT_COLUMNS: [&str; 7] = ["number", "started_at", "took_ms", "outcome", "status", "node", "detail"];
const LIMIT: usize = 50;
const PAGE: u32 = 200;

/// One timer.
#[derive(Debug, Clone, Args)]
pub struct OneTimer {
    /// The id of the timer, or its key
    #[arg(value_name = "ID|KEY")]
    pub timer: String,
    /// The namespace of the key
    #[arg(long = "ns", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

impl OneTimer {
    pub fn reference(&self) -> TimerRef {
        reference(&self.timer, self.namespace.as_deref())
    }
}

/// What looks like an id is one, unless a namespace is named.
pub fn reference(timer: &str, namespace: Option<&str>) -> TimerRef {
    match namespace {
        None if uuid::Uuid::try_parse(timer).is_ok() => TimerRef::from(timer),
        namespace => TimerRef::key(namespace.unwrap_or("default"), timer),
    }
}

#[derive(Debug, Clone, Args)]
pub struct GetOptions {
    #[command(flatten)]
    pub timer: OneTimer,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    /// Conditions such as status:failed ns:billing key:order-* due:<1h dest:HOST:PORT meta.customer:42 error:timeout
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// How many timers at most; 50 unless given
    #[arg(long, value_name = "COUNT", conflicts_with = "all")]
    pub limit: Option<usize>,
    /// Show all that match
    #[arg(long)]
    pub all: bool,
    /// Sort by created_at or execute_at
    #[arg(long, value_name = "MEMBER", value_parser = ["created_at", "execute_at"])]
    pub sort: Option<String>,
    /// The direction: asc or desc
    #[arg(long, value_name = "DIRECTION", value_parser = ["asc", "desc"])]
    pub order: Option<String>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn get(options: &GetOptions, context: &Context) -> Result<(), Failure> {
    let client = options.connection.client(context)?;
    let timer = client.timers().get_raw(options.timer.reference()).await;
    let timer = timer.map_err(|error| Failure::from(error).in_json(options.output.is_json()))?;
    options.output.print_one(context, &timer, &COLUMNS)
}

pub async fn attempts(options: &GetOptions, context: &Context) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Attempts {
        attempts: Vec<Json>,
    }
    let client = options.connection.client(context)?;
    let data = client.timers().attempts_raw(options.timer.reference()).await;
    let data = data.map_err(|error| Failure::from(error).in_json(options.output.is_json()))?;
    if options.output.is_json() {
        return print(format_args!("{data}"));
    }
    options.output.print_many(context, &data.parse::<Attempts>()?.attempts, &ATTEMPT_COLUMNS)
}

pub async fn list(options: &ListOptions, context: &Context) -> Result<(), Failure> {
    let ListOptions { sort, order, output, .. } = options;
    let client = options.connection.client(context)?;
    let limit = if options.all { usize::MAX } else { options.limit.unwrap_or(LIMIT) };
    let page = PAGE.min(u32::try_from(limit).unwrap_or(PAGE)).max(1);
    let filter = filter(&options.filter, context)?;
    let query = PageQuery { filter, sort: sort.clone(), order: order.clone(), limit: Some(page), ..PageQuery::default() };
    let timers = client.timers().list_raw(query).take(limit);
    let failed = |error: client::Error| Failure::from(error).in_json(output.is_json());
    // Lines go out as they come; a table has to know all of them.
    if matches!(output.format(context), Format::Ndjson | Format::Id) {
        let mut timers = Box::pin(timers);
        while let Some(timer) = timers.try_next().await.map_err(failed)? {
            output.print_many(context, &[timer], &COLUMNS)?;
        }
        return Ok(());
    }
    let timers: Vec<Json> = timers.try_collect().await.map_err(failed)?;
    output.print_many(context, &timers, &COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_an_id_is_one_unless_a_namespace_is_named() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(reference(id, None), TimerRef::Id(id.to_owned()));
        assert_eq!(reference(id, Some("n")), TimerRef::key("n", id));
        assert_eq!(reference("order-7", None), TimerRef::key("default", "order-7"));
    }
}
