//! The numbers at the head of the overview, each with the list that it counts: the words of a list are read once, by the same instant, for
//! the number and for the link.

use commands::{Count, ListQuery};
use domain::{Namespace, Span, Timestamp};
use maud::{Markup, html};

use crate::{
    filter_words::{FilterWords, word},
    pages::timers::PAGE_TIMERS,
    problem::Problem,
    text,
    visitor::Visitor,
};

const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(60 * 60);
pub(crate) const DAY: Span = Span::from_secs(24 * 60 * 60);
/// Pending timers whose time has come: those that wait for their call, and those that wait for a retry.
pub(crate) const OVERDUE: &str = "status:pending due:<0s";

/// The timers that some words find, and how many they are.
struct Counted {
    words: String,
    count: Count,
}

impl Counted {
    /// As a list of these words tells it: an estimate where counting would keep the page waiting.
    async fn read(visitor: &Visitor, words: String, now: Timestamp) -> Result<Self, Problem> {
        let filter = FilterWords::parse(&words, now)?.filter;
        let mut count = visitor.commands.total(&filter).await?;
        // Of one that has a single page it is exact.
        if count.is_estimate && count.timers <= PAGE_TIMERS.into() {
            count = visitor.commands.list(&ListQuery { filter, limit: PAGE_TIMERS, ..ListQuery::default() }).await?.total;
        }
        Ok(Self { words, count })
    }

    fn value(&self) -> String {
        text::count(self.count.timers, self.count.is_estimate).replace("about ", "~ ")
    }
}

/// What the overview counts.
pub(crate) struct Counts {
    pending: Counted,
    soon: Counted,
    executing: Counted,
    completed: Counted,
    failed: Counted,
}

impl Counts {
    pub(crate) async fn read(visitor: &Visitor, namespaces: &[Namespace], now: Timestamp) -> Result<Self, Problem> {
        let counted = |words: &str| Counted::read(visitor, limited(words, namespaces), now);
        let (hour, day) = (within_an_hour(now), since_a_day(now));
        let [completed, failed] = ["completed", "failed"].map(|status| format!("status:{status} {day}"));
        let (pending, soon, executing, completed, failed) = tokio::join!(
            counted("status:pending"),
            counted(&format!("status:pending {hour}")),
            counted("status:executing"),
            counted(&completed),
            counted(&failed),
        );
        Ok(Self { pending: pending?, soon: soon?, executing: executing?, completed: completed?, failed: failed? })
    }

    /// The tiles of these, and of the oldest that is overdue. `retried` is how many calls failed in the last day and were repeated.
    pub(crate) fn tiles(self, retried: u64, overdue: Tile) -> [Tile; 6] {
        let Self { pending, soon, executing, completed, failed } = self;
        let share = share(completed.count, failed.count);
        let has_failed = failed.count.timers > 0;
        let retried = if retried > 0 { format!("{} retried", text::counted(retried, "call", "calls")) } else { String::new() };
        [
            Tile::of_waiting("Pending", pending),
            Tile::of_waiting("Due within an hour", soon),
            Tile::of("Executing", executing),
            Tile {
                note: share,
                title: Some("Timers that were due in the last 24 hours"),
                ..Tile::of("Completed, 24 h", completed)
            },
            Tile {
                note: retried,
                title: Some("Timers that were due in the last 24 hours"),
                class: if has_failed { "bad" } else { "" },
                ..Tile::of("Failed, 24 h", failed)
            },
            overdue,
        ]
    }
}

/// How much of what has ended has ended well.
fn share(completed: Count, failed: Count) -> String {
    match completed.timers + failed.timers {
        0 => String::new(),
        ended => format!("{:.2} % of what ended", 100.0 * completed.timers as f64 / ended as f64),
    }
}

/// A number, what it is of, and the list that it leads to.
pub(crate) struct Tile {
    name: &'static str,
    value: String,
    note: String,
    class: &'static str,
    words: String,
    /// The list of these words, in the order in which it is worth reading.
    list: fn(&Visitor, &str) -> String,
    /// What the list shows, where the name does not say it.
    title: Option<&'static str>,
}

impl Tile {
    fn of(name: &'static str, counted: Counted) -> Self {
        let (value, words) = (counted.value(), counted.words);
        Self { name, value, note: String::new(), class: "", words, list: Visitor::link_to_timers, title: None }
    }

    /// Makes the tile of timers whose time is still to come: its list begins with the soonest.
    fn of_waiting(name: &'static str, counted: Counted) -> Self {
        let note = if counted.count.is_estimate { "estimated" } else { "" };
        Self { note: note.to_owned(), list: Visitor::link_to_next_timers, ..Self::of(name, counted) }
    }

    pub(crate) fn of_overdue(overdue: Option<Timestamp>, namespaces: &[Namespace], now: Timestamp) -> Self {
        let late = overdue.map(|due| now.since(due)).filter(|late| *late >= Span::from_millis(500));
        let class = match late {
            Some(late) if late >= Span::from_secs(30) => "bad",
            Some(late) if late >= Span::from_secs(2) => "warn",
            _ => "",
        };
        Self {
            name: "Oldest overdue",
            value: late.map_or_else(|| "none".to_owned(), text::span),
            note: if late.is_some() { "waits for its call" } else { "everything is on time" }.to_owned(),
            class,
            words: limited(OVERDUE, namespaces),
            list: Visitor::link_to_next_timers,
            title: Some("Pending timers whose time has come, those that wait for a retry too"),
        }
    }
}

/// The hour that begins with this minute. The region would be sent to every viewer each second if the bounds moved on with the clock.
fn within_an_hour(now: Timestamp) -> String {
    let from = floor(now, MINUTE);
    format!("due:{from}..{}", from.saturating_add(HOUR))
}

/// No filter asks when a timer ended, so that those are counted that were due within the day, from the beginning of an hour on.
fn since_a_day(now: Timestamp) -> String {
    format!("due:{}..", floor(now.saturating_sub(DAY), HOUR))
}

fn floor(at: Timestamp, unit: Span) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - at.as_micros().rem_euclid(unit.as_micros()))
}

/// These words for the namespaces that the page is limited to.
pub(crate) fn limited(words: &str, namespaces: &[Namespace]) -> String {
    namespaces.iter().fold(words.to_owned(), |words, namespace| format!("{words} {}", word("ns:", namespace.as_str())))
}

pub(crate) fn render(visitor: &Visitor, tiles: &[Tile]) -> Markup {
    html! {
        @for tile in tiles {
            a class={ "tile " (tile.class) } href=((tile.list)(visitor, &tile.words)) title=[tile.title] {
                span.name { (tile.name) } span.value { (tile.value) } span.note { (tile.note) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Rights;

    use super::*;
    use crate::rig::Rig;

    /// The name, the number and the link of each tile.
    fn tiles(page: &str) -> Vec<(String, String, String)> {
        let between =
            |text: &str, from: &str| text.split(from).nth(1).and_then(|rest| rest.split(['<', '"']).next()).unwrap().to_owned();
        let tile = |text: &str| {
            (between(text, "class=\"name\">"), between(text, "class=\"value\">"), between(text, "href=\"").replace("&amp;", "&"))
        };
        page.split("<a class=\"tile").skip(1).map(tile).collect()
    }

    #[test]
    fn bounds_stand_still_for_a_while() {
        let now = Timestamp::parse("now", "2030-01-02T15:30:12Z").unwrap();
        assert_eq!(since_a_day(now), "due:2030-01-01T15:00:00Z..");
        assert_eq!(within_an_hour(now), "due:2030-01-02T15:30:00Z..2030-01-02T16:30:00Z");
    }

    #[tokio::test]
    async fn every_tile_leads_to_as_many_timers_as_it_counts() {
        let rig = Rig::new();
        for n in 0..3 {
            rig.timer(&format!("failed-{n}"), if n == 0 { "a" } else { "b" }).await;
        }
        rig.clock.advance(Span::from_secs(3_700));
        rig.fail_all("answered 503").await;
        for (key, namespace) in [("one", "a"), ("other", "b")] {
            rig.timer(key, namespace).await;
        }
        // What was due in this minute is within the hour that begins with it, and what is due in an hour is not.
        rig.clock.advance(Span::from_secs(30));
        rig.timer("later", "a").await;
        let (_, scoped) = rig.holder(&["a"], Rights::Read).await;
        for (cookie, query, counts) in [
            (&rig.cookie, "", ["3", "2", "0", "0", "3"]),
            (&rig.cookie, "?ns=b", ["1", "1", "0", "0", "2"]),
            (&scoped, "", ["2", "1", "0", "0", "1"]),
        ] {
            let page = rig.get_as(cookie, &format!("/console{query}")).await.text;
            let tiles = tiles(&page);
            assert_eq!(tiles.len(), 6, "{page}");
            for ((name, value, link), count) in tiles.iter().zip(counts) {
                assert_eq!(value, count, "{name}{query}: {link}");
                let list = rig.get_as(cookie, link).await.text;
                assert!(list.contains(&format!("<strong>{count}</strong> timer")), "{name}{query}: {link}");
            }
        }
    }
}
