//! Timers as rows of a table.

use commands::Summary;
use domain::{Event, Status, Timer, Timestamp};
use futures_util::{StreamExt, stream};
use maud::{Markup, html};

use crate::{
    actions::Action,
    text::{cut, distance, number, status, time},
    visitor::Visitor,
};

/// How many timers are read at the same time for what a summary does not say.
const READ_AT_ONCE: usize = 8;
const ERROR_CHARS_MAX: usize = 120;
/// How wide a period is that an instant of a list stands for.
const HOUR_MICROS: i64 = 3_600 * 1_000_000;

/// A timer of a list, with what a summary does not say.
pub(crate) struct Row {
    pub(crate) summary: Summary,
    pub(crate) destination: Option<String>,
    /// How many attempts it has at most, if that is limited.
    attempts_max: Option<u32>,
}

/// The rows of these timers, in their order. One that is gone meanwhile keeps what is known of it.
pub(crate) async fn read(visitor: &Visitor, summaries: Vec<Summary>) -> Vec<Row> {
    let row = async |summary: Summary| {
        let timer = visitor.commands.get(summary.id).await.ok();
        let destination = timer.as_ref().and_then(|timer| timer.definition.callback.address().map(|address| address.to_string()));
        Row { attempts_max: timer.as_ref().map(attempts_max), destination, summary }
    };
    stream::iter(summaries).map(row).buffered(READ_AT_ONCE).collect().await
}

pub(crate) fn attempts_max(timer: &Timer) -> u32 {
    timer.definition.retries().map_or(1, |policy| policy.max_retries.saturating_add(1))
}

/// `2 of 6`; without an end where retries have none.
pub(crate) fn attempts(made: u32, max: Option<u32>) -> String {
    match max {
        Some(u32::MAX) | None => number(made.into()),
        Some(max) => format!("{} of {}", number(made.into()), number(max.into())),
    }
}

/// The hour of an instant, as the value of a condition such as `due:`.
fn hour_of(at: Timestamp) -> String {
    let from = at.as_micros() - at.as_micros().rem_euclid(HOUR_MICROS);
    format!("{}..{}", Timestamp::from_micros(from), Timestamp::from_micros(from.saturating_add(HOUR_MICROS)))
}

/// What a timer is called: its key, or its id.
pub(crate) fn name_of(summary: &Summary) -> String {
    summary.key.as_ref().map_or_else(|| summary.id.to_string(), ToString::to_string)
}

impl Row {
    /// Whether its time still comes.
    const fn is_waiting(&self) -> bool {
        matches!(self.summary.status, Status::Pending | Status::Paused | Status::Executing)
    }

    /// Whether it was due, and waits for another attempt.
    const fn is_retried(&self) -> bool {
        matches!(self.summary.status, Status::Pending) && self.summary.attempt > 0
    }

    /// As a row that can be selected; `filtered` leads to the same list with one more word.
    pub(crate) fn render(&self, visitor: &Visitor, filtered: &dyn Fn(&str, &str) -> String) -> Markup {
        let name = name_of(&self.summary);
        self.row(
            visitor,
            filtered,
            Some(html! { input type="checkbox" name="id" value=(self.summary.id) form="bulk" aria-label={ "Select " (name) }; }),
        )
    }

    /// The same, to be looked at only.
    pub(crate) fn without_tick(&self, visitor: &Visitor, filtered: &dyn Fn(&str, &str) -> String) -> Markup {
        self.row(visitor, filtered, None)
    }

    /// What a viewer may do to it, by the names of the pages that ask before they do.
    fn acts(&self, visitor: &Visitor) -> Option<String> {
        let status = self.summary.status;
        let possible = Action::ALL.into_iter().filter(|action| action.is_possible(status)).map(Action::name);
        let edit = status.after(Event::Update).map(|_| "edit");
        visitor.may_write().then(|| possible.chain(edit).collect::<Vec<_>>().join(" ")).filter(|acts| !acts.is_empty())
    }

    fn row(&self, visitor: &Visitor, filtered: &dyn Fn(&str, &str) -> String, tick: Option<Markup>) -> Markup {
        let Self { summary, destination, attempts_max } = self;
        let id = summary.id;
        let name = name_of(summary);
        let link = visitor.link(&format!("/timers/{id}"));
        let error = summary.last_error.as_deref().unwrap_or_default();
        // What is shown of it is what is searched for.
        let error_part: String = error.chars().take(ERROR_CHARS_MAX).collect();
        let hour = |name: &str, at: Timestamp| {
            html! {
                a.cell href=(filtered(name, &hour_of(at))) { (time(visitor, at)) }
            }
        };
        html! {
            tr data-row=(link) data-acts=[self.acts(visitor)] {
                @if let Some(tick) = tick { td.tick { (tick) } }
                td.state { a.cell href=(filtered("status:", summary.status.as_str())) { (status(summary.status)) } }
                td.cut.fill.name {
                    a.mono href=(link) title=(name) { (name) }
                    @if !error.is_empty() { span.under title=(error) { (cut(error, ERROR_CHARS_MAX)) } }
                    @if let Some(key) = &summary.key {
                        a.only href=(filtered("key:", key.as_str())) title="Only this key" aria-label={ "Only the key " (key) } { "only" }
                    }
                }
                td.cut.minor { a.cell href=(filtered("ns:", summary.namespace.as_str())) { (summary.namespace) } }
                td.minor.due { (hour("due:", summary.execute_at)) }
                td.num.left {
                    @if self.is_retried() { span.muted title="Its last attempt failed; the next one follows its retry policy" { "will retry" } }
                    @else if self.is_waiting() { (distance(visitor, summary.execute_at)) }
                    @else { span.muted { "–" } }
                }
                td.cut.extra { @match destination {
                    Some(destination) => { a.cell href=(filtered("dest:", destination)) { (destination) } }
                    None => { span.muted { (summary.callback_kind) } }
                } }
                td.num.spare { (attempts(summary.attempt, *attempts_max)) }
                td.cut.fill.muted.extra title=(error) {
                    @if !error.is_empty() { a.cell href=(filtered("error:", &error_part)) { (cut(error, ERROR_CHARS_MAX)) } }
                }
                td.muted.spare { (hour("created:", summary.created_at)) }
            }
        }
    }
}
