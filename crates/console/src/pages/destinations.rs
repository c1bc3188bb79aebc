//! `/console/destinations`: the receivers, as all nodes saw them. One of them has a page of its own.

use axum::extract::Path;
use commands::{DestinationHealth, DestinationStatus, Filter, ListQuery, Listed};
use domain::Status;
use maud::{Markup, html};

use crate::{
    chart,
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    problem::Problem,
    region::Region,
    text::{self, micros, number},
    timer_rows,
    visitor::Visitor,
};

const LATEST: u32 = 10;

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
            div.empty { h2 { "No destinations yet" } p { "A receiver appears once it was called." } }
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
        Region::new("destination-facts", "card span-5", facts(&one)),
        Region::new("destination-took", "card span-7", took(&one)),
        Region::new("destination-failed", "card span-12", latest(visitor, name, Status::Failed, "Latest failures").await?),
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

fn facts(one: &DestinationStatus) -> Markup {
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
            dt { "Pending retries" } dd { (number(one.pending_retries.into())) }
            @if let Some(error) = &one.last_error { dt { "Last error" } dd { (error) } }
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
                thead { tr { th { "Timer" } th { "Namespace" } th { "Due" } th { "Last error" } } }
                tbody { @for summary in &page.timers {
                    tr {
                        td.cut { a.mono href=(visitor.link(&format!("/timers/{}", summary.id))) { (timer_rows::name_of(summary)) } }
                        td { (summary.namespace) }
                        td { (text::time(visitor, summary.execute_at)) }
                        td.cut.muted { (summary.last_error.as_deref().unwrap_or_default()) }
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
                th { "Destination" } th { "Health" } th.num.minor { "In flight" } th.num.minor { "Delivered, 10 min" } th.num.minor { "Failed, 10 min" }
                th.num.minor { "p50" } th.num { "p99" } th.num.minor { "Pending retries" } th.minor { "Last error" }
            } }
            tbody { @for one in destinations {
                @let link = visitor.link(&format!("/destinations/{}", text::in_path(&one.name)));
                tr data-row=(link) {
                    td.cut { a href=(link) { (one.name) } }
                    td { (health(one.health)) }
                    td.num.minor { (number(one.in_flight.into())) }
                    td.num.minor { (number(one.delivered_10m.into())) }
                    td.num.minor { @if one.failed_10m > 0 { span.bad { (number(one.failed_10m.into())) } } @else { "0" } }
                    td.num.minor { (one.took_p50_micros.map(micros).unwrap_or_default()) }
                    td.num { (one.took_p99_micros.map(micros).unwrap_or_default()) }
                    td.num.minor { (number(one.pending_retries.into())) }
                    @let error = one.last_error.as_deref().unwrap_or_default();
                    td.cut.muted.minor title=(error) { (text::cut(error, 80)) }
                }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use domain::Rights;

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
}
