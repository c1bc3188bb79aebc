//! The numbers at the head of the overview, each with the list that it counts.

use commands::{Count, DueBuckets, FiredBuckets};
use domain::{Namespace, Span, Timestamp};
use maud::{Markup, html};

use crate::{filter_words::word, text, visitor::Visitor};

const HOUR: Span = Span::from_secs(60 * 60);
pub(crate) const DAY: Span = Span::from_secs(24 * 60 * 60);

/// A number, what it is of, and the list that it leads to.
pub(crate) struct Tile {
    name: &'static str,
    value: String,
    note: String,
    class: &'static str,
    words: String,
    /// What the list shows, where that is not what the number counts.
    leads_to: Option<&'static str>,
}

impl Tile {
    pub(crate) fn of_count(name: &'static str, count: Count, words: &str) -> Self {
        let note = if count.is_estimate { "estimated" } else { "" };
        Self {
            name,
            value: text::count(count.timers, count.is_estimate).replace("about ", "~ "),
            note: note.to_owned(),
            class: "",
            words: words.to_owned(),
            leads_to: None,
        }
    }

    pub(crate) fn of_due(due: &DueBuckets) -> Self {
        let timers = due.buckets.iter().map(|(_, timers)| timers).sum();
        let is_estimate = due.is_estimate || !due.is_complete;
        let value = if is_estimate { format!("~ {}", text::number(timers)) } else { text::number(timers) };
        Self {
            name: "Due within an hour",
            value,
            note: String::new(),
            class: "",
            words: "status:pending due:<1h".to_owned(),
            leads_to: None,
        }
    }

    pub(crate) fn of_completed(day: &FiredBuckets, now: Timestamp) -> Self {
        let (completed, failed) = day
            .buckets
            .iter()
            .fold((0, 0), |(completed, failed), (_, digest)| (completed + digest.completed, failed + digest.failed));
        let note = match completed + failed {
            0 => String::new(),
            ended => format!("{:.2} % of what ended", 100.0 * completed as f64 / ended as f64),
        };
        Self {
            name: "Completed, 24 h",
            value: text::number(completed),
            note,
            class: "",
            words: format!("status:completed {}", due_since_a_day(now)),
            leads_to: Some("Completed timers that were due in the last 24 hours"),
        }
    }

    pub(crate) fn of_failed(day: &FiredBuckets, now: Timestamp) -> Self {
        let (failed, retried) =
            day.buckets.iter().fold((0, 0), |(failed, retried), (_, digest)| (failed + digest.failed, retried + digest.retried));
        let note = if retried > 0 { format!("{} retried", text::counted(retried, "call", "calls")) } else { String::new() };
        Self {
            name: "Failed, 24 h",
            value: text::number(failed),
            note,
            class: if failed > 0 { "bad" } else { "" },
            words: format!("status:failed {}", due_since_a_day(now)),
            leads_to: Some("Failed timers that were due in the last 24 hours"),
        }
    }

    pub(crate) fn of_overdue(overdue: Option<Timestamp>, now: Timestamp) -> Self {
        let late = overdue.map(|due| now.since(due)).filter(|late| *late >= Span::from_millis(500));
        let class = match late {
            Some(late) if late >= Span::from_secs(30) => "bad",
            Some(late) if late >= Span::from_secs(2) => "warn",
            _ => "",
        };
        let value = late.map_or_else(|| "none".to_owned(), text::span);
        let note = if late.is_some() { "waits for its call" } else { "everything is on time" };
        Self { name: "Oldest overdue", value, note: note.to_owned(), class, words: OVERDUE.to_owned(), leads_to: None }
    }
}

/// Pending timers whose time has come: those that wait for their call, and those that wait for a retry.
pub(crate) const OVERDUE: &str = "status:pending due:<0s";

/// No filter asks when a timer ended, so that the list is that of those that were due within the day. From the beginning of an hour on:
/// the region would be sent to every viewer each second if the filter moved on with the clock.
fn due_since_a_day(now: Timestamp) -> String {
    let since = now.saturating_sub(DAY);
    format!("due:{}..", Timestamp::from_micros(since.as_micros() - since.as_micros().rem_euclid(HOUR.as_micros())))
}

/// These words for the namespaces that the page is limited to.
pub(crate) fn limited(words: &str, namespaces: &[Namespace]) -> String {
    namespaces.iter().fold(words.to_owned(), |words, namespace| format!("{words} {}", word("ns:", namespace.as_str())))
}

pub(crate) fn render(visitor: &Visitor, namespaces: &[Namespace], tiles: &[Tile]) -> Markup {
    html! {
        @for tile in tiles {
            a class={ "tile " (tile.class) } href=(visitor.link_to_timers(&limited(&tile.words, namespaces))) title=[tile.leads_to] {
                span.name { (tile.name) } span.value { (tile.value) } span.note { (tile.note) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_a_day_begins_with_an_hour() {
        let now = Timestamp::parse("now", "2030-01-02T15:30:12Z").unwrap();
        assert_eq!(due_since_a_day(now), "due:2030-01-01T15:00:00Z..");
    }
}
