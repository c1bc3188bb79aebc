//! `/console/destinations`: the receivers, as all nodes saw them. One of them has a page of its own.

use axum::extract::Path;
use commands::{DestinationHealth, DestinationStatus, Filter, ListQuery, Listed, Order, Sort};
use domain::{Span, Status, Timestamp};
use maud::{Markup, html};

use crate::{
    chart::{self, Bar},
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    pages::tiles::OVERDUE,
    problem::Problem,
    region::Region,
    text::{self, micros, number},
    timer_rows,
    visitor::Visitor,
};

const LATEST: u32 = 10;
/// How many pending timers are looked at for the chart of when they are due.
const DUE_MAX: u32 = 1_000;
const DUE_BARS: i64 = 47;
/// How many seconds a bar can stand for: a minute, up to 30 days.
const STEPS: [u32; 8] = [60, 300, 1_800, 3_600, 10_800, 86_400, 604_800, 2_592_000];

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let body = html! {
        div.title { h1 { "Destinations" } span.muted { "receivers that were called in the last day" } }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Destinations), "Destinations", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let listed = visitor.commands.destinations(&[]).await?;
    let body = html! {
        @if listed.destinations.is_empty() {
            div.empty { h2 { "No destinations yet" } p { "A receiver appears once it has been called." } }
        } @else {
            @if !listed.is_complete { p.summary.muted { "Those that were called last; there are more." } }
            (table(visitor, &listed.destinations))
        }
    };
    Ok(vec![Region::new("destinations", "card", body)])
}

/// `GET /console/destinations/{name}`.
pub(crate) async fn show_one(visitor: Visitor, Path(name): Path<String>) -> Result<Markup, Problem> {
    let regions = regions_of_one(&visitor, &name).await?;
    let body = html! {
        (regions[0])
        div.grid { @for region in &regions[1..] { (region) } }
    };
    Ok(frame::page(&visitor, Some(Section::Destinations), &name, body))
}

pub(crate) async fn regions_of_one(visitor: &Visitor, name: &str) -> Result<Vec<Region>, Problem> {
    let listed = visitor.commands.destinations(&[]).await?.destinations;
    let Some(one) = listed.into_iter().find(|one| one.name == name) else { return regions_of_uncalled(visitor, name).await };
    Ok(vec![
        Region::new("destination-head", "title", head(visitor, name, one.health)),
        Region::new("destination-facts", "card span-5", facts(visitor, &one)),
        Region::new("destination-took", "card span-7", took(&one)),
        Region::new("destination-failed", "card span-12", latest(visitor, name, Status::Failed, "Latest failures").await?),
        Region::new("destination-due", "card span-12", due(visitor, name).await?),
        Region::new("destination-pending", "card span-12", latest(visitor, name, Status::Pending, "Pending").await?),
    ])
}

/// A receiver that was not called within the last day is known by its timers alone.
async fn regions_of_uncalled(visitor: &Visitor, name: &str) -> Result<Vec<Region>, Problem> {
    let filter = Filter { destination: Some(name.to_owned()), ..Filter::default() };
    let page = visitor.commands.search(&ListQuery { filter, limit: 1, ..ListQuery::default() }).await?;
    if page.timers.is_empty() && page.complete {
        return Err(Problem::NoSuchPage);
    }
    let facts = html! { header { h2 { "Health" } } div.body { p.muted { "It was not called within the last day." } } };
    Ok(vec![
        Region::new("destination-head", "title", head(visitor, name, DestinationHealth::Silent)),
        Region::new("destination-facts", "card span-12", facts),
        Region::new("destination-failed", "card span-12", latest(visitor, name, Status::Failed, "Latest failures").await?),
        Region::new("destination-due", "card span-12", due(visitor, name).await?),
        Region::new("destination-pending", "card span-12", latest(visitor, name, Status::Pending, "Pending").await?),
    ])
}

fn head(visitor: &Visitor, name: &str, of: DestinationHealth) -> Markup {
    let pending = format!("status:pending {}", word("dest:", name));
    html! {
        h1.mono { (name) } (health(of))
        span.actions {
            a.button href=(visitor.link_to_timers(&word("dest:", name))) { "Its timers" }
            @if visitor.may_write() { a.button href=(visitor.link_to("/operations/new", &Fields::from([("do", "pause"), ("q", pending.as_str())]))) { "Pause its timers…" } }
        }
    }
}

fn facts(visitor: &Visitor, one: &DestinationStatus) -> Markup {
    let its = word("dest:", &one.name);
    let rate = |delivered: u32, failed: u32| match delivered + failed {
        0 => "no calls".to_owned(),
        calls => format!(
            "{} of {} delivered ({:.1} %)",
            number(delivered.into()),
            number(calls.into()),
            100.0 * f64::from(delivered) / f64::from(calls)
        ),
    };
    html! {
        header { h2 { "Health" } }
        div.body { dl.facts {
            dt { "Last minute" } dd { (rate(one.delivered_1m, one.failed_1m)) }
            dt { "Last ten minutes" } dd { (rate(one.delivered_10m, one.failed_10m)) }
            dt { "In flight" } dd { (number(one.in_flight.into())) }
            dt { "Half answer within" } dd { (one.took_p50_micros.map_or_else(|| "–".to_owned(), micros)) }
            dt { "99 % answer within" } dd { (one.took_p99_micros.map_or_else(|| "–".to_owned(), micros)) }
            dt { "Failures in a row" } dd.bad[one.failures_in_a_row > 0] { (number(one.failures_in_a_row.into())) }
            dt { "Pending retries" } dd { a href=(visitor.link_to_next_timers(&format!("{OVERDUE} {its}"))) { (number(one.pending_retries.into())) } }
            @if let Some(error) = &one.last_error { dt { "Last error" } dd { a href=(visitor.link_to_timers(&format!("{its} {}", word("error:", error)))) { (error) } } }
        } }
    }
}

fn took(one: &DestinationStatus) -> Markup {
    html! {
        header { h2 { "How long calls take" } span.aside { "last ten minutes" } }
        div.body {
            @if one.took.count() == 0 { p.muted { "No call ended within ten minutes." } }
            @else { (chart::histogram("Calls of the last ten minutes by how long they took", &one.took, "took")) }
        }
    }
}

/// When the pending timers of a receiver are due, as far as they are found in time.
async fn due(visitor: &Visitor, name: &str) -> Result<Markup, Problem> {
    let filter = Filter { status: vec![Status::Pending], destination: Some(name.to_owned()), ..Filter::default() };
    let query = ListQuery { filter, sort: Sort::ExecuteAt, order: Order::Ascending, limit: DUE_MAX, ..ListQuery::default() };
    let page = visitor.commands.search(&query).await?;
    let times: Vec<Timestamp> = page.timers.iter().map(|timer| timer.execute_at).collect();
    let words = format!("status:pending {}", word("dest:", name));
    Ok(html! {
        header { h2 { "Due" } @if page.next.is_some() { span.muted { "the first " (number(times.len() as u64)) } } }
        div.body {
            @match DueBars::of(&times, visitor.now()) {
                Some(due) => { (chart::bars("Pending timers by the time at which they are due", &due.bars(visitor, &words), &due.labels())) }
                None => { p.muted { @if page.complete { "Nothing is pending." } @else { "Not found within 250 ms." } } }
            }
        }
    })
}

/// Pending timers by the time at which they are due, in buckets of a round length.
struct DueBars {
    from: Timestamp,
    step: Span,
    counts: Vec<u64>,
}

impl DueBars {
    /// The times must be in order. What is overdue counts for the first bucket, which begins now.
    fn of(times: &[Timestamp], now: Timestamp) -> Option<Self> {
        let ahead = times.last()?.since(now).as_micros() / 1_000_000 + 1;
        let step = STEPS.into_iter().find(|step| ahead <= i64::from(*step) * DUE_BARS).unwrap_or(STEPS[STEPS.len() - 1]);
        let step = Span::from_secs(step);
        let from = Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(step.as_micros()));
        let bucket = |at: &Timestamp| usize::try_from(at.since(from).as_micros() / step.as_micros()).unwrap_or(0);
        let mut counts = vec![0; DUE_BARS as usize + 1];
        // The longest step reaches far, and what lies beyond it counts for the last bar.
        times.iter().for_each(|at| counts[bucket(at).min(DUE_BARS as usize)] += 1);
        Some(Self { from, step, counts })
    }

    fn bars(&self, visitor: &Visitor, words: &str) -> Vec<Bar> {
        let mut from = self.from;
        let bar = |count: &u64| {
            let begin = from;
            from = from.saturating_add(self.step);
            let query = format!("{words} due:{begin}..{from}");
            Bar {
                value: *count,
                title: format!("{}, from {} UTC", text::counted(*count, "timer", "timers"), text::instant(begin, false)),
                link: Some(visitor.link_to_next_timers(&query)),
            }
        };
        self.counts.iter().map(bar).collect()
    }

    fn labels(&self) -> Vec<String> {
        let end = Span::from_micros_clamped(self.step.as_micros().saturating_mul(DUE_BARS + 1));
        vec!["now".to_owned(), format!("+{}", text::span(end))]
    }
}

/// The latest timers of a receiver in one status. The search ends in time, with what it has found.
async fn latest(visitor: &Visitor, name: &str, status: Status, title: &str) -> Result<Markup, Problem> {
    let filter = Filter { status: vec![status], destination: Some(name.to_owned()), ..Filter::default() };
    let Listed { page, total } = visitor.commands.list(&ListQuery { filter, limit: LATEST, ..ListQuery::default() }).await?;
    let all = visitor.link_to_timers(&format!("status:{status} {}", word("dest:", name)));
    Ok(html! {
        header { h2 { (title) } @if !total.is_estimate || total.timers >= page.timers.len().max(1) as u64 { span.muted { (text::count(total.timers, total.is_estimate)) } } a.aside href=(all) { "All" } }
        @if page.timers.is_empty() {
            div.body { p.muted { @if page.complete { "None." } @else { "Not found within 250 ms: " a href=(all) { "search on" } "." } } }
        } @else {
            div.table { table {
                thead { tr { th { "Timer" } th.minor { "Namespace" } th { "Due" } th.extra { "Last error" } } }
                tbody { @for summary in &page.timers {
                    tr {
                        @let error = summary.last_error.as_deref().unwrap_or_default();
                        td.cut.fill { a.mono href=(visitor.link(&format!("/timers/{}", summary.id))) { (timer_rows::name_of(summary)) } @if !error.is_empty() { span.under title=(error) { (error) } } }
                        td.cut.minor { a.cell href=(visitor.link_to_timers(&format!("status:{status} {} {}", word("dest:", name), word("ns:", summary.namespace.as_str())))) { (summary.namespace) } }
                        td { (text::time(visitor, summary.execute_at)) }
                        td.cut.fill.muted.extra title=(error) { (error) }
                    }
                } }
            } }
        }
    })
}

/// A word, its colour, and the rule behind it.
fn health(health: DestinationHealth) -> Markup {
    let (name, class, rule) = match health {
        DestinationHealth::Good => ("good", "completed", "Most calls deliver, and within a second"),
        DestinationHealth::Slow => ("slow", "expired", "Half of its calls take longer than a second"),
        DestinationHealth::Failing => ("failing", "failed", "The last five calls failed, or half of the latest"),
        DestinationHealth::Silent => ("silent", "canceled", "No call ended within ten minutes"),
    };
    html! { span class={ "status " (class) } title=(rule) { (name) } }
}

pub(crate) fn table(visitor: &Visitor, destinations: &[DestinationStatus]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Destinations" { table {
            thead { tr {
                th { "Destination" } th { "Health" } th.num.extra { "In flight" }
                th.num.spare { "Delivered, 1\u{a0}min" } th.num.minor { "Delivered, 10\u{a0}min" } th.num.spare { "Failed, 1\u{a0}min" } th.num.minor { "Failed, 10\u{a0}min" } th.num.extra { "Failed in\u{a0}a\u{a0}row" }
                th.num.minor { "p50" } th.num.minor { "p99" } th.num.minor { "Pending retries" } th.extra { "Last error" } th.minor { span.unseen { "Timers" } }
            } }
            tbody { @for one in destinations {
                @let link = visitor.link(&format!("/destinations/{}", text::in_path(&one.name)));
                @let its = word("dest:", &one.name);
                tr data-row=(link) {
                    @let error = one.last_error.as_deref().unwrap_or_default();
                    @let error_link = html! { a.cell href=(visitor.link_to_timers(&format!("{its} {}", word("error:", error)))) { (text::cut(error, 80)) } };
                    td.cut.fill { a href=(link) title=(one.name) { (one.name) } @if !error.is_empty() { span.under title=(error) { (error_link) } } }
                    td { (health(one.health)) }
                    td.num.extra { (number(one.in_flight.into())) }
                    td.num.spare { (number(one.delivered_1m.into())) }
                    td.num.minor { (number(one.delivered_10m.into())) }
                    @for (class, failed) in [("spare", one.failed_1m), ("minor", one.failed_10m), ("extra", one.failures_in_a_row)] {
                        td class={ "num " (class) } { span.bad[failed > 0] { (number(failed.into())) } }
                    }
                    td.num.minor { (one.took_p50_micros.map(micros).unwrap_or_default()) }
                    td.num.minor { (one.took_p99_micros.map(micros).unwrap_or_default()) }
                    td.num.minor { a.cell href=(visitor.link_to_next_timers(&format!("{OVERDUE} {its}"))) { (number(one.pending_retries.into())) } }
                    td.cut.fill.muted.extra title=(error) { @if !error.is_empty() { (error_link) } }
                    td.num.minor { a href=(visitor.link_to_timers(&its)) { "Timers" } }
                }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Clock, Namespace, Rights};
    use store::{NodeId, NodeReceiver, NodeStats, ReceiverReport};

    use crate::rig::Rig;

    #[tokio::test]
    async fn an_installation_without_calls_has_no_destinations() {
        let rig = Rig::new();
        assert!(rig.get("/console/destinations").await.text.contains("No destinations yet"));
        assert_eq!(rig.get("/console/destinations/a:80").await.status, 404);
    }

    #[tokio::test]
    async fn a_destination_that_was_not_called_for_long_has_a_page_while_it_has_timers() {
        let rig = Rig::new();
        rig.timer("order-1", "a").await;
        let page = rig.get("/console/destinations/api.shop.example:443").await;
        assert!(page.status == 200 && page.text.contains("not called within the last day"), "{}", page.text);
        assert!(page.text.contains("order-1") && page.text.contains("Pause its timers"), "{}", page.text);
        let (_, other) = rig.holder(&["b"], Rights::Read).await;
        assert_eq!(rig.get_as(&other, "/console/destinations/api.shop.example:443").await.status, 404);
    }

    #[tokio::test]
    async fn what_is_told_of_a_destination_leads_to_its_timers() {
        let rig = Rig::new();
        let report = ReceiverReport { last_error: Some("answered 503".to_owned()), ..ReceiverReport::default() };
        let (node, namespace) = (NodeId(1), Namespace::parse("a").unwrap());
        let receiver = NodeReceiver { node, namespace, destination: "x:80".to_owned(), written_at: rig.clock.now(), report };
        let stats = NodeStats { digests: Vec::new(), receivers: vec![receiver], forget_before: Timestamp::MIN };
        rig.store.record_stats(&stats).await.unwrap();
        let list = rig.get("/console/destinations").await.text;
        for words in
            ["dest%3Ax%3A80\"", "dest%3Ax%3A80+error%3A%22answered+503%22\"", "status%3Apending+due%3A%3C0s+dest%3Ax%3A80&amp;"]
        {
            assert!(list.contains(&format!("href=\"/console/timers?q={words}")), "{words}: {list}");
        }
    }

    #[test]
    fn due_times_are_counted_in_round_steps() {
        let now = Timestamp::parse("now", "2030-01-01T00:00:30Z").unwrap();
        let ahead =
            |seconds: &[u32]| seconds.iter().map(|seconds| now.saturating_add(Span::from_secs(*seconds))).collect::<Vec<_>>();
        for (seconds, step, first, last) in
            [(&[0_u32, 10, 60][..], 60, 2, 0), (&[10, 3_000][..], 300, 1, 0), (&[10, 200_000_000][..], 2_592_000, 1, 1)]
        {
            let due = DueBars::of(&ahead(seconds), now).unwrap();
            assert_eq!(
                (due.step, due.counts[0], due.counts.iter().sum::<u64>()),
                (Span::from_secs(step), first, seconds.len() as u64)
            );
            assert_eq!(due.counts.last(), Some(&last));
        }
        let overdue = DueBars::of(&[now.saturating_sub(Span::from_secs(900))], now).unwrap();
        assert_eq!(overdue.counts[0], 1);
        assert!(DueBars::of(&[], now).is_none());
    }
}
