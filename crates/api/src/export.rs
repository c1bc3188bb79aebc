//! `GET /timers.csv`, `/timers.json` and `/timers.ndjson`: every timer that matches, page by page as the client reads.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::State,
    response::{IntoResponse, Response},
};
use commands::{Commands, Cursor, Filter, ListQuery, Order, Period, Summary};
use domain::Timestamp;
use futures_util::stream;
use http::{HeaderValue, Uri, header};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::{
    Api,
    auth::Permitted,
    envelope::ErrorEnvelope,
    error::ApiError,
    filter::{self, FilterParameters},
    view::TimerView,
};

/// How many timers are in memory at a time.
const PAGE_TIMERS: u32 = 1_000;

/// Nothing but the filter.
#[derive(Deserialize)]
struct NoMore {}

/// How timers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Json,
    Ndjson,
}

/// Export timers as CSV
///
/// Every timer that matches, in the order of creation, with a line of names first. It is written while it is read: a list that breaks
/// off without an end was not whole. Timers that are registered meanwhile are left out.
#[utoipa::path(
    get, path = "/timers.csv", tag = "timers", operation_id = "exportTimersCsv", security(("ApiKey" = [])),
    params(FilterParameters),
    responses(
        (status = 200, description = "The timers.", body = String, content_type = "text/csv"),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn csv(State(api): State<Api>, Permitted(commands): Permitted, uri: Uri) -> Result<Response, ApiError> {
    export(&api, commands, &uri, Format::Csv)
}

/// Export timers as JSON
///
/// The same as an array.
#[utoipa::path(
    get, path = "/timers.json", tag = "timers", operation_id = "exportTimersJson", security(("ApiKey" = [])),
    params(FilterParameters),
    responses(
        (status = 200, description = "The timers.", body = Vec<TimerView>, content_type = "application/json"),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn json(State(api): State<Api>, Permitted(commands): Permitted, uri: Uri) -> Result<Response, ApiError> {
    export(&api, commands, &uri, Format::Json)
}

/// Export timers as NDJSON
///
/// The same with one JSON object a line.
#[utoipa::path(
    get, path = "/timers.ndjson", tag = "timers", operation_id = "exportTimersNdjson", security(("ApiKey" = [])),
    params(FilterParameters),
    responses(
        (status = 200, description = "The timers.", body = String, content_type = "application/x-ndjson"),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn ndjson(State(api): State<Api>, Permitted(commands): Permitted, uri: Uri) -> Result<Response, ApiError> {
    export(&api, commands, &uri, Format::Ndjson)
}

fn export(api: &Api, commands: Arc<Commands>, uri: &Uri, format: Format) -> Result<Response, ApiError> {
    let (filter, NoMore {}) = filter::read(uri)?;
    api.exporter.write(commands, filter, format)
}

/// Writes exports. One of them reads at a time, so that all of them together leave the store's sessions to lists.
#[derive(Debug, Clone)]
pub struct Exporter(Arc<Semaphore>);

impl Default for Exporter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Exporter {
    /// The timers that match, as a file of this format (`csv`, `json` or `ndjson`); `None` if there is no such format.
    pub fn export(&self, commands: Commands, filter: Filter, format: &str) -> Option<Response> {
        let format = match format {
            "csv" => Format::Csv,
            "json" => Format::Json,
            "ndjson" => Format::Ndjson,
            _ => return None,
        };
        Some(self.write(Arc::new(commands), filter, format).into_response())
    }

    fn write(&self, commands: Arc<Commands>, filter: Filter, format: Format) -> Result<Response, ApiError> {
        answer(Arc::clone(&self.0), commands, filter, format)
    }
}

fn answer(exporting: Arc<Semaphore>, commands: Arc<Commands>, mut filter: Filter, format: Format) -> Result<Response, ApiError> {
    let now = commands.clock.now();
    // What is registered while it is read would otherwise make a list without an end.
    let end = now.saturating_add(domain::Span::from_micros(1));
    filter.created = Period { to: Some(filter.created.to.map_or(end, |to| to.min(end))), ..filter.created };
    commands.check_filter(&filter)?;
    let query = ListQuery { filter, order: Order::Ascending, limit: PAGE_TIMERS, ..ListQuery::default() };
    let pages = Pages { exporting, commands, query, format, now, written: 0, state: Reading::Begin };
    let body = Body::from_stream(stream::unfold(pages, async |mut pages| {
        let text = pages.next().await?;
        Some((text.map(Bytes::from).map_err(broken_off), pages))
    }));
    let (content_type, name) = match format {
        Format::Csv => ("text/csv; charset=utf-8; header=present", "timers.csv"),
        Format::Json => ("application/json", "timers.json"),
        Format::Ndjson => ("application/x-ndjson", "timers.ndjson"),
    };
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")).map_err(|_| ApiError::Internal)?;
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type)), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, body).into_response())
}

/// Why an export ends early, for the log: its head was sent long ago, and the client only sees that the connection breaks off.
fn broken_off(error: ApiError) -> std::io::Error {
    let cause = error.cause().unwrap_or_default();
    tracing::error!(cause, "an export broke off");
    std::io::Error::other("the export broke off")
}

/// How far the export is.
enum Reading {
    Begin,
    /// The next page is behind this.
    Next(Option<Cursor>),
    End,
    Over,
}

/// The texts of an export, one for each page. It is dropped when the client is gone.
struct Pages {
    exporting: Arc<Semaphore>,
    commands: Arc<Commands>,
    query: ListQuery,
    format: Format,
    now: Timestamp,
    written: u64,
    state: Reading,
}

impl Pages {
    /// An error breaks the connection off, so that no client takes a part for the whole.
    async fn next(&mut self) -> Option<Result<String, ApiError>> {
        match std::mem::replace(&mut self.state, Reading::Over) {
            Reading::Begin => {
                self.state = Reading::Next(None);
                Some(Ok(self.format.beginning()))
            }
            Reading::Next(after) => {
                self.query.after = after;
                match self.page().await {
                    Ok((text, next)) => {
                        self.state = next.map_or(Reading::End, |next| Reading::Next(Some(next)));
                        Some(Ok(text))
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            Reading::End => Some(Ok(self.format.end().to_owned())),
            Reading::Over => None,
        }
    }

    async fn page(&mut self) -> Result<(String, Option<Cursor>), ApiError> {
        let permit = self.exporting.acquire().await.map_err(|_| ApiError::Internal)?;
        let page = self.commands.search(&self.query).await?;
        drop(permit);
        let mut text = String::new();
        for summary in page.timers {
            self.format.write(&mut text, summary, self.written == 0, self.now)?;
            self.written += 1;
        }
        Ok((text, page.next))
    }
}

const COLUMNS: [&str; 14] = [
    "id",
    "namespace",
    "key",
    "group",
    "status",
    "callback_type",
    "execute_at",
    "executed_at",
    "created_at",
    "updated_at",
    "attempt",
    "correlation_id",
    "last_error",
    "revision",
];

impl Format {
    fn beginning(self) -> String {
        match self {
            Self::Csv => format!("{}\r\n", COLUMNS.join(",")),
            Self::Json => "[".to_owned(),
            Self::Ndjson => String::new(),
        }
    }

    const fn end(self) -> &'static str {
        match self {
            Self::Json => "]\n",
            Self::Csv | Self::Ndjson => "",
        }
    }

    fn write(self, text: &mut String, summary: Summary, is_first: bool, now: Timestamp) -> Result<(), ApiError> {
        if self == Self::Csv {
            write_line(text, &summary);
            return Ok(());
        }
        if self == Self::Json {
            text.push_str(if is_first { "\n" } else { ",\n" });
        }
        let json = serde_json::to_string(&TimerView::of_summary(summary, now)).map_err(|_| ApiError::Internal)?;
        text.push_str(&json);
        if self == Self::Ndjson {
            text.push('\n');
        }
        Ok(())
    }
}

/// A line as RFC 4180 has it.
fn write_line(text: &mut String, summary: &Summary) {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let values: [String; COLUMNS.len()] = [
        summary.id.to_string(),
        summary.namespace.to_string(),
        summary.key.as_ref().map(ToString::to_string).unwrap_or_default(),
        summary.group.as_ref().map(ToString::to_string).unwrap_or_default(),
        summary.status.to_string(),
        summary.callback_kind.clone(),
        summary.execute_at.to_string(),
        time(summary.executed_at),
        summary.created_at.to_string(),
        summary.updated_at.to_string(),
        summary.attempt.to_string(),
        summary.correlation_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        summary.last_error.clone().unwrap_or_default(),
        summary.revision.to_string(),
    ];
    text.push_str(&values.map(|value| field(&value)).join(","));
    text.push_str("\r\n");
}

/// A spreadsheet takes a text that begins with one of these for a formula, and runs it: an apostrophe before it keeps it a text.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

fn field(value: &str) -> String {
    let apostrophe = if value.starts_with(FORMULAS) { "'" } else { "" };
    if value.contains([',', '"', '\r', '\n']) {
        format!("\"{apostrophe}{}\"", value.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{value}")
    }
}

#[cfg(test)]
mod tests {
    use crate::rig::Rig;

    async fn rig() -> Rig {
        let rig = Rig::new();
        for (key, namespace) in [("a,\"b\"", "x"), ("é", "y"), ("c", "x")] {
            let body = serde_json::json!({
                "delay": "1h", "callback": {"type": "http", "url": "http://a"}, "key": key, "namespace": namespace
            });
            rig.created(&body.to_string()).await;
            rig.clock.advance(domain::Span::from_secs(1));
        }
        rig
    }

    #[tokio::test]
    async fn every_timer_that_matches_is_written_in_each_form() {
        let rig = rig().await;
        let csv = rig.get("/timers.csv?namespace=x").await;
        let lines: Vec<_> = csv.text.split("\r\n").collect();
        assert_eq!(lines.len(), 4, "{}", csv.text);
        assert!(lines[0].starts_with("id,namespace,key,group,status,"), "{}", lines[0]);
        assert!(lines[1].contains(",x,\"a,\"\"b\"\"\",,pending,http,"), "{}", lines[1]);
        assert!(lines[2].contains(",x,c,,pending,http,"), "{}", lines[2]);
        let json: serde_json::Value = serde_json::from_str(&rig.get("/timers.json").await.text).unwrap();
        let keys: Vec<_> = json.as_array().unwrap().iter().map(|timer| timer["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["a,\"b\"", "é", "c"]);
        let ndjson = rig.get("/timers.ndjson?key_prefix=%C3%A9").await.text;
        assert_eq!(ndjson.lines().count(), 1);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ndjson).unwrap()["key"], "é");
    }

    #[test]
    fn no_text_is_a_formula() {
        for (value, expected) in
            [("=1+1", "'=1+1"), ("@cmd,x", "\"'@cmd,x\""), ("-1", "'-1"), ("a=b", "a=b"), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(super::field(value), expected, "{value}");
        }
    }

    #[tokio::test]
    async fn what_matches_nothing_is_empty() {
        let rig = rig().await;
        assert_eq!(rig.get("/timers.json?namespace=absent").await.text, "[]\n");
        assert_eq!(rig.get("/timers.ndjson?namespace=absent").await.text, "");
        assert_eq!(rig.get("/timers.csv?namespace=absent").await.text.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_wrong_filter_is_refused_before_anything_is_written() {
        let rig = rig().await;
        for path in ["/timers.csv", "/timers.json", "/timers.ndjson"] {
            let message = rig.get(&format!("{path}?limit=3")).await.refused(400, 2);
            assert_eq!(message, "'limit' is not a known parameter");
        }
    }
}
