//! What `timer top` shows: one reading of the service, and how it is drawn.

use client::{Client, Json, PageQuery};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Paragraph, Row, Sparkline, Table},
};
use serde_json::Value;

use crate::{Failure, rows};

/// One reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overview {
    pub url: String,
    pub at: String,
    pub counts: Vec<(String, u64)>,
    /// What was fired in the last hour, minute by minute.
    pub fired: Vec<Value>,
    /// How many timers are due in the next hour, minute by minute.
    pub due: Vec<u64>,
    pub next: Vec<Value>,
    pub destinations: Vec<Value>,
    /// Empty for a key that may not see them.
    pub nodes: Vec<Value>,
    pub oldest_overdue_seconds: f64,
}

const STATUSES: [&str; 7] = ["pending", "executing", "completed", "failed", "expired", "canceled", "paused"];
const NEXT: u32 = 10;

impl Overview {
    pub async fn read(client: &Client) -> Result<Self, Failure> {
        let mut counts = Vec::new();
        for status in STATUSES {
            let count = client.timers().count(&client::Filter::new().status(status)).await?;
            counts.push((status.to_owned(), count.total));
        }
        let health: Value = client.read("/healthz").await?.parse()?;
        let fired: Value = client.read("/stats/fired").await?.parse()?;
        let due: Value = client.read("/stats/due").await?.parse()?;
        let page = PageQuery {
            sort: Some("execute_at".to_owned()),
            order: Some("asc".to_owned()),
            limit: Some(NEXT),
            ..client::Filter::new().status("pending").into()
        };
        let next = client.timers().page(&page).await?.timers;
        let destinations: Value = client.read("/destinations").await?.parse()?;
        let cluster: Value = match client.read("/cluster").await {
            Ok(cluster) => cluster.parse()?,
            // Only the administrator may see it.
            Err(client::Error::Unauthorized(_)) => Value::Null,
            Err(error) => return Err(error.into()),
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        Ok(Self {
            url: client.url().to_owned(),
            at: rows::text(&health["timestamp"]),
            counts,
            fired: list(&fired["buckets"]),
            due: list(&due["buckets"]).iter().map(|bucket| bucket["pending"].as_u64().unwrap_or_default()).collect(),
            next: next.iter().map(Json::parse).collect::<Result<_, _>>()?,
            destinations: list(&destinations["destinations"]),
            nodes: list(&cluster["nodes"]),
            oldest_overdue_seconds: cluster["oldest_overdue_seconds"].as_f64().unwrap_or_default(),
        })
    }

    pub fn draw(&self, frame: &mut Frame<'_>) {
        let areas: [Rect; 6] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(5),
            Constraint::Length(5),
            Constraint::Min(4),
            Constraint::Length(6),
            Constraint::Length(5),
        ])
        .areas(frame.area());
        let [head, fired, due, next, destinations, nodes] = areas;
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(self.fired_line(), fired);
        let most = self.due.iter().max().copied().unwrap_or_default();
        let title = format!("due in the next hour, by the minute (at most {most})");
        frame.render_widget(Sparkline::default().block(titled(title)).data(&self.due), due);
        frame.render_widget(self.next_table(), next);
        frame.render_widget(self.destination_table(), destinations);
        frame.render_widget(self.node_table(), nodes);
    }

    fn head(&self) -> Vec<Line<'_>> {
        let counts: Vec<_> = self.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let late = match self.oldest_overdue_seconds {
            late if late > 0.0 => format!("the oldest waiting timer is {late:.3} s late"),
            _ => "nothing is late".to_owned(),
        };
        vec![Line::from(format!("{}  {}  {late}  (q quits)", self.url, self.at)), Line::from(counts.join("  "))]
    }

    fn fired_line(&self) -> Sparkline<'_> {
        let fired: Vec<u64> = self.fired.iter().map(|bucket| bucket["fired"].as_u64().unwrap_or_default()).collect();
        let sum = |name: &str| self.fired.iter().filter_map(|bucket| bucket[name].as_u64()).sum::<u64>();
        let latest = |name: &str| self.fired.iter().rev().find_map(|bucket| bucket[name].as_f64()).unwrap_or_default();
        let title = format!(
            "fired in the last hour: {} ({} failed, {} retried), late by {:.1} ms (half), {:.1} ms (99 of 100), {:.1} ms (most)",
            sum("fired"),
            sum("failed"),
            sum("retried"),
            latest("lateness_p50_ms"),
            latest("lateness_p99_ms"),
            latest("lateness_max_ms"),
        );
        Sparkline::default().block(titled(title)).data(fired)
    }

    fn next_table(&self) -> Table<'_> {
        let row = |timer: &Value| {
            let cell = |name: &str| rows::cell(name, &timer[name], rows::Zone::Local);
            Row::new([cell("time_left"), cell("execute_at"), cell("namespace"), cell("key"), cell("id")])
        };
        listing("next", &["IN", "DUE", "NAMESPACE", "KEY", "ID"], self.next.iter().map(row), &[8, 24, 16, 24, 36])
    }

    fn destination_table(&self) -> Table<'_> {
        let row = |destination: &Value| {
            let cell = |name: &str| rows::cell(name, &destination[name], rows::Zone::Local);
            let names = ["destination", "health", "in_flight", "ok_1m", "failed_1m", "p99_ms", "last_error"];
            Row::new(names.map(cell))
        };
        let head = ["DESTINATION", "HEALTH", "IN FLIGHT", "OK 1M", "FAILED 1M", "P99 MS", "LAST ERROR"];
        listing("destinations", &head, self.destinations.iter().map(row), &[30, 8, 9, 7, 9, 9, 40])
    }

    fn node_table(&self) -> Table<'_> {
        let row = |node: &Value| {
            let alive = if node["alive"] == true { "alive" } else { "dead" };
            let text = |name: &str| rows::text(&node[name]);
            Row::new([text("name"), text("version"), alive.to_owned(), text("shards"), text("clock_skew_seconds")])
        };
        listing("nodes", &["NAME", "VERSION", "STATE", "SHARDS", "SKEW S"], self.nodes.iter().map(row), &[30, 10, 6, 6, 12])
    }
}

fn titled<'a>(title: impl Into<Line<'a>>) -> Block<'a> {
    Block::bordered().title(title)
}

fn listing<'a>(title: &'a str, head: &[&'a str], rows: impl Iterator<Item = Row<'a>>, widths: &[u16]) -> Table<'a> {
    let head = Row::new(head.to_vec()).style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(rows, widths.iter().map(|width| Constraint::Length(*width))).header(head).block(titled(title))
}
