//! `/console/failed`: timers that ended badly, grouped by what went wrong.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use commands::{Filter, ListQuery, Summary};
use domain::{Namespace, Status, TimerId, Timestamp};
use maud::{Markup, html};

use crate::{
    chart,
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    known_destinations::{self, Destination},
    problem::Problem,
    region::Region,
    text::{self, distance, number},
    timer_rows,
    visitor::Visitor,
};

/// How many are looked at, and for how long: the latest.
const READ_MAX: usize = 5_000;
const PAGE_TIMERS: u32 = 1_000;
const TIME_MAX: Duration = Duration::from_millis(500);
/// For how long their receivers are read. Those that are not known by then are counted when the page is rendered again.
const DESTINATIONS_TIME_MAX: Duration = Duration::from_millis(250);
/// How many groups are shown.
const GROUPS_MAX: usize = 50;
const SPARKS: usize = 24;
const STATUSES: &str = "status:failed,expired";
/// The shortest text that tells one error from others.
const TELLING_CHARS_MIN: usize = 4;

/// Timers of one namespace that called the same receiver and failed alike.
struct Group {
    namespace: Namespace,
    destination: Destination,
    shape: String,
    example: Summary,
    ended: Vec<Timestamp>,
}

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let body = html! {
        div.title { h1 { "Failed" } span.muted { "failed and expired timers, by what went wrong" }
            span.actions { a.button href=(visitor.link_to_timers(STATUSES)) { "As a list" } } }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Failed), "Failed", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let (summaries, is_all) = read(visitor).await?;
    let destinations = known_destinations::read(visitor, &summaries, DESTINATIONS_TIME_MAX).await;
    let looked_at = destinations.len();
    let is_all = is_all && looked_at == summaries.len();
    let mut groups = grouped(summaries, &destinations);
    groups.truncate(GROUPS_MAX);
    let body = html! {
        @if groups.is_empty() {
            div.empty { h2 { "Nothing has failed" } p { "Timers that end badly are kept here until they are retried, or their retention is over." } }
        } @else {
            @if !is_all { p.summary.muted { "The latest " (number(looked_at as u64)) " were looked at; there are more." } }
            (table(visitor, &groups))
        }
    };
    Ok(vec![Region::new("failed", "card", body)])
}

/// The latest that failed, and whether these are all.
async fn read(visitor: &Visitor) -> Result<(Vec<Summary>, bool), Problem> {
    let filter = Filter { status: vec![Status::Failed, Status::Expired], ..Filter::default() };
    let mut query = ListQuery { filter, limit: PAGE_TIMERS, ..ListQuery::default() };
    let (mut found, until) = (Vec::new(), tokio::time::Instant::now() + TIME_MAX);
    loop {
        let page = visitor.commands.search(&query).await?;
        found.extend(page.timers);
        query.after = page.next;
        if page.next.is_none() || found.len() >= READ_MAX || tokio::time::Instant::now() >= until {
            return Ok((found, page.next.is_none()));
        }
    }
}

/// Those whose receiver is known, the largest group first.
fn grouped(summaries: Vec<Summary>, destinations: &HashMap<TimerId, Destination>) -> Vec<Group> {
    let mut groups: BTreeMap<(Namespace, Destination, String), Group> = BTreeMap::new();
    for summary in summaries {
        let Some(destination) = destinations.get(&summary.id).cloned() else { continue };
        let shape = shape_of(summary.last_error.as_deref().unwrap_or("no error is recorded"));
        let ended = summary.executed_at.unwrap_or(summary.updated_at);
        let alike = (summary.namespace.clone(), destination.clone(), shape.clone());
        let group = groups.entry(alike).or_insert_with(|| Group {
            namespace: summary.namespace.clone(),
            destination,
            shape,
            example: summary,
            ended: Vec::new(),
        });
        group.ended.push(ended);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.ended.len(), group.ended.iter().copied().max())));
    groups
}

/// An error without what differs from one timer to the next: words with digits in them become a mark.
fn shape_of(error: &str) -> String {
    // How often it was tried is the same error.
    let error = error.split("; gave up").next().unwrap_or(error);
    let mut shape = String::new();
    for part in error.split_inclusive(|c: char| !c.is_alphanumeric() && c != '-' && c != '_') {
        let (word, end) = match part.char_indices().last() {
            Some((at, c)) if !c.is_alphanumeric() && c != '-' && c != '_' => part.split_at(at),
            _ => (part, ""),
        };
        // A status stays: it is what went wrong.
        let is_status = word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|b| b.is_ascii_digit());
        let differs = word.bytes().any(|b| b.is_ascii_digit()) && !is_status;
        shape.push_str(if differs { "…" } else { word });
        shape.push_str(end);
    }
    // Of an address one mark is enough.
    for several in ["….", "…:"] {
        while let Some(at) = shape.find(&format!("{several}…")) {
            shape.replace_range(at..at + several.len(), "");
        }
    }
    shape
}

impl Group {
    /// The filter that finds this group. `None` where no filter tells it from other groups: then nothing may be done to all of it.
    fn words(&self) -> Option<String> {
        self.example.last_error.as_ref()?;
        let destination = word("dest:", self.destination.as_deref()?);
        let error = word("error:", telling(&self.shape)?);
        Some(format!("{STATUSES} {} {destination} {error}", word("ns:", self.namespace.as_str())))
    }

    /// The list that the group is part of, where no filter finds the group alone.
    fn wider_words(&self) -> String {
        let destination = self.destination.as_deref().map(|destination| word(" dest:", destination)).unwrap_or_default();
        format!("{STATUSES} {}{destination}", word("ns:", self.namespace.as_str()))
    }
}

/// The longest part of a shape that all of its errors have.
fn telling(shape: &str) -> Option<&str> {
    shape.split('…').map(str::trim).max_by_key(|part| part.len()).filter(|part| part.chars().count() >= TELLING_CHARS_MIN)
}

fn table(visitor: &Visitor, groups: &[Group]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Failed timers by error" { table {
            thead { tr { th.num { "Count" } th { "Error, destination and namespace" } th.extra { "When" } th.extra { "First" } th.extra { "Last" } th.extra { "Example" } th { span.unseen { "Actions" } } } }
            tbody { @for group in groups { (row(visitor, group)) } }
        } }
    }
}

fn row(visitor: &Visitor, group: &Group) -> Markup {
    let (first, last) =
        (group.ended.iter().copied().min().unwrap_or_default(), group.ended.iter().copied().max().unwrap_or_default());
    let words = group.words();
    let list = visitor.link_to_timers(&words.clone().unwrap_or_else(|| group.wider_words()));
    let only = |condition: &str, value: &str| visitor.link_to_timers(&format!("{STATUSES} {}", word(condition, value)));
    html! {
        tr data-row=(list) {
            td.num { a.cell href=(list) { strong { (number(group.ended.len() as u64)) } } }
            td.wrap.fill {
                a href=(list) { (text::cut(&group.shape, 160)) }
                span.under.always {
                    @match group.destination.as_deref() {
                        Some(destination) => { a href=(only("dest:", destination)) { (destination) } }
                        None => { (group.example.callback_kind) }
                    }
                    " · " a href=(only("ns:", group.namespace.as_str())) { (group.namespace) }
                    span.under { " · " (distance(visitor, last)) }
                }
            }
            td.extra { (chart::sparkline("Failures over time", &sparks(&group.ended, first, last))) }
            td.extra { (distance(visitor, first)) }
            td.extra { (distance(visitor, last)) }
            td.cut.extra { a.mono href=(visitor.link(&format!("/timers/{}", group.example.id))) { (timer_rows::name_of(&group.example)) } }
            td { @if let Some(words) = words.filter(|_| visitor.may_write()) { (acts(visitor, &words, group.ended.len())) } }
        }
    }
}

/// What can be done to a group. The preview is told how many it has, and says so when more or fewer match.
fn acts(visitor: &Visitor, words: &str, count: usize) -> Markup {
    let count = count.to_string();
    let link = |work: &str, over: &str| {
        visitor.link_to("/operations/new", &Fields::from([("do", work), ("q", words), ("over", over), ("seen", &count)]))
    };
    html! {
        span.acts {
            a.button href=(link("retry", "")) { "Retry all…" }
            a.button.minor href=(link("retry", "10m")) title="So that the receiver is not flooded" { "Retry over 10 min…" }
            a.button.minor href=(link("delete", "")) title="Gives them up: they are removed from the record" { "Delete…" }
        }
    }
}

fn sparks(ended: &[Timestamp], first: Timestamp, last: Timestamp) -> Vec<u64> {
    let mut sparks = vec![0; SPARKS];
    let whole = last.since(first).as_micros().max(1);
    for at in ended {
        let part = at.since(first).as_micros().saturating_mul(SPARKS as i64 - 1) / whole;
        if let Some(spark) = usize::try_from(part).ok().and_then(|part| sparks.get_mut(part)) {
            *spark += 1;
        }
    }
    sparks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Rig;

    #[test]
    fn errors_that_differ_in_numbers_and_ids_have_one_shape() {
        for (error, shape) in [
            ("answered 503", "answered 503"),
            ("no answer within 30s", "no answer within …"),
            ("order 4815 of 01890a5d-ac96-774b-bcce-b302099a8057 is gone", "order … of … is gone"),
            ("connection refused (POST http://127.0.0.1:9/a); gave up after 3 attempts", "connection refused (POST http://…/a)"),
        ] {
            assert_eq!(shape_of(error), shape);
        }
        assert_eq!(telling("order … of … is gone"), Some("is gone"));
        assert_eq!(telling("…"), None);
    }

    #[test]
    fn failures_are_drawn_over_their_time() {
        let at = |micros| Timestamp::from_micros(micros);
        let sparks = sparks(&[at(0), at(0), at(23)], at(0), at(23));
        assert_eq!((sparks[0], sparks[23], sparks.iter().sum::<u64>()), (2, 1, 3));
    }

    #[tokio::test]
    async fn failures_are_grouped_and_can_be_retried_together() {
        let rig = Rig::new();
        assert!(rig.get("/console/failed").await.text.contains("Nothing has failed"));
        for n in 0..3 {
            rig.timer(&format!("k{n}"), "a").await;
        }
        rig.fail_all("order 17 is <b>gone</b>").await;
        let page = rig.get("/console/failed").await;
        assert!(page.text.contains("<strong>3</strong>") && page.text.contains("order … is &lt;b&gt;gone"), "{}", page.text);
        let words = "q=status%3Afailed%2Cexpired+ns%3Aa+dest%3Aapi.shop.example%3A443+error%3A";
        for part in [format!("do=retry&amp;{words}"), format!("do=delete&amp;{words}"), "seen=3".to_owned()] {
            assert!(page.text.contains(&part), "{part}: {}", page.text);
        }
        for list in [format!("{words}%22is+%3Cb%3Egone%3C%2Fb%3E%22"), "q=status%3Afailed%2Cexpired+ns%3Aa".to_owned()] {
            assert!(page.text.contains(&format!("href=\"/console/timers?{list}\"")), "{list}: {}", page.text);
        }
        assert!(page.text.contains("Retry over 10 min…") && !page.text.contains("Cancel"), "{}", page.text);
        let preview = rig.get(&page.link("Delete…")).await;
        assert!(preview.status == 200 && preview.text.contains("Delete 3<"), "{}", preview.text);
    }

    #[tokio::test]
    async fn an_action_on_a_group_takes_in_no_other_group() {
        let rig = Rig::new();
        let here = rig.timer("here", "a").await;
        rig.timer_at("there", "a", "https://other.example/hook").await;
        rig.fail_all("answered 503").await;
        let page = rig.get("/console/failed").await;
        assert_eq!(page.text.matches("<strong>1</strong>").count(), 2, "{}", page.text);
        let first = page.text.find("api.shop.example:443<").unwrap();
        let second = page.text.find("other.example:443<").unwrap();
        let row = crate::rig::Reply { text: page.text[first.min(second)..].to_owned(), ..page };
        let preview = rig.get(&row.link("Retry all…")).await;
        let (meant, other) = if first < second { ("here", ">there<") } else { ("there", ">here<") };
        assert!(preview.text.contains(meant) && !preview.text.contains(other), "{}", preview.text);
        assert!(!preview.text.contains("The group"), "{}", preview.text);
        // An error that says more has a shape of its own, and contains the same words.
        rig.commands.retry(here, None).await.unwrap();
        rig.fail_all("answered 503 with a page of html").await;
        let preview = rig.get(&row.link("Retry all…").replace("seen=1", "seen=2")).await;
        assert!(preview.text.contains("The group counted 2, and 1 timer matches its filter now"), "{}", preview.text);
    }

    #[tokio::test]
    async fn nothing_can_be_done_to_a_group_that_no_filter_finds_alone() {
        let rig = Rig::new();
        rig.timer("k", "a").await;
        rig.fail_all("17").await;
        let page = rig.get("/console/failed").await;
        assert!(page.text.contains("<strong>1</strong>") && !page.text.contains("/operations/new"), "{}", page.text);
    }
}
