//! `/console`: how the service is, what comes next, and what needs a look.

use axum::response::{IntoResponse, Redirect, Response};
use commands::{
    DestinationHealth, DestinationStatus, Digest, DueBuckets, Filter, FiredBuckets, ListQuery, NewTimerRequest, Order,
    PeriodRequest, Sort, Target,
};
use domain::{Callback, Namespace, RequestedTime, Span, Status, Timestamp};
use maud::{Markup, html};

use crate::{
    chart::{self, Bar, Line},
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    pages::tiles::{self, Counts, DAY, Tile, limited},
    problem::Problem,
    region::Region,
    text::{self, distance},
    timer_rows,
    visitor::Visitor,
};

const NEXT_TIMERS: u32 = 10;
const DESTINATIONS_SHOWN: usize = 5;
/// The region of an installation without timers.
const FIRST_STEPS: &str = "first-steps";

/// How far the chart of what comes next reaches.
struct Range {
    name: &'static str,
    step_minutes: u32,
    buckets: u32,
    labels: [&'static str; 4],
}

const RANGES: [Range; 4] = [
    Range { name: "5m", step_minutes: 1, buckets: 5, labels: ["now", "+2 min", "+3 min", "+5 min"] },
    Range { name: "1h", step_minutes: 1, buckets: 60, labels: ["now", "+20 min", "+40 min", "+1 h"] },
    Range { name: "24h", step_minutes: 30, buckets: 48, labels: ["now", "+8 h", "+16 h", "+24 h"] },
    Range { name: "7d", step_minutes: 180, buckets: 56, labels: ["now", "+56 h", "+112 h", "+7 d"] },
];

impl Range {
    fn read(fields: &Fields) -> &'static Self {
        RANGES.iter().find(|range| fields.get("range") == Some(range.name)).unwrap_or(&RANGES[1])
    }

    /// Whole buckets, from the one that has begun.
    fn request(&self, now: Timestamp) -> PeriodRequest {
        let step = Span::from_secs(self.step_minutes * 60);
        let from = Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(step.as_micros()));
        let to = from.saturating_add(Span::from_secs(self.step_minutes * 60 * self.buckets));
        PeriodRequest { from: Some(from), to: Some(to), step: Some(step) }
    }
}

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    let namespaces = namespaces(&fields)?;
    let body = if is_empty(&visitor, &namespaces).await? {
        html! { div.title { h1 { "Overview" } } (Region::new(FIRST_STEPS, "card", first_steps(&visitor))) }
    } else {
        let regions = metric_regions(&visitor, &fields, &namespaces).await?;
        html! {
            div.title {
                h1 { "Overview" }
                span.muted { @match namespaces.first() { Some(namespace) => { "namespace " (namespace) } None => { (seen(&visitor)) } } }
                span.actions { @if visitor.may_write() { a.button.main href=(visitor.link("/timers/new")) { "New timer" } } }
            }
            (regions[0])
            div.grid { @for region in &regions[1..] { (region) } }
        }
    };
    Ok(frame::page(&visitor, Some(Section::Overview), "Overview", body).into_response())
}

fn namespaces(fields: &Fields) -> Result<Vec<Namespace>, Problem> {
    Ok(fields.get("ns").map(Namespace::parse).transpose()?.into_iter().collect())
}

/// Which namespaces the viewer sees.
fn seen(visitor: &Visitor) -> String {
    match visitor.commands.caller.bound_to() {
        None => "all namespaces".to_owned(),
        Some(own) => own.iter().map(Namespace::as_str).collect::<Vec<_>>().join(", "),
    }
}

async fn is_empty(visitor: &Visitor, namespaces: &[Namespace]) -> Result<bool, Problem> {
    let filter = Filter { namespaces: namespaces.to_vec(), ..Filter::default() };
    let page = visitor.commands.search(&ListQuery { filter, limit: 1, ..ListQuery::default() }).await?;
    Ok(page.timers.is_empty() && page.complete)
}

/// What changes while the page is looked at.
pub(crate) async fn regions(visitor: &Visitor, fields: &Fields) -> Result<Vec<Region>, Problem> {
    let namespaces = namespaces(fields)?;
    let mut regions = metric_regions(visitor, fields, &namespaces).await?;
    if !is_empty(visitor, &namespaces).await? {
        // A page that shows the first steps is loaded again; the others have no such region.
        regions.push(Region::new(FIRST_STEPS, "", html! {}));
    }
    Ok(regions)
}

async fn metric_regions(visitor: &Visitor, fields: &Fields, namespaces: &[Namespace]) -> Result<Vec<Region>, Problem> {
    let (now, range) = (visitor.now(), Range::read(fields));
    let commands = &visitor.commands;
    let ahead = range.request(now);
    let last_hour = PeriodRequest::default();
    let day = PeriodRequest { from: Some(now.saturating_sub(DAY)), to: Some(now), step: Some(Span::from_secs(3600)) };
    let (counts, due, fired, fired_day, overdue, destinations) = tokio::join!(
        Counts::read(visitor, namespaces, now),
        commands.due_buckets(namespaces, &ahead),
        commands.fired_buckets(namespaces, &last_hour),
        commands.fired_buckets(namespaces, &day),
        oldest_overdue(visitor, namespaces),
        commands.destinations(namespaces),
    );
    let (fired, destinations) = (fired?, destinations?.destinations);
    let retried = fired_day?.buckets.iter().map(|(_, digest)| digest.retried).sum();
    let tiles = counts?.tiles(retried, Tile::of_overdue(overdue?, namespaces, now));
    Ok(vec![
        Region::new("tiles", "card tiles", tiles::render(visitor, &tiles)),
        Region::new("next-fires", "card span-7", next_fires(visitor, fields, namespaces, range, &due?)),
        Region::new("lateness", "card span-5", lateness(&fired)),
        Region::new("next-timers", "card span-7 tall", next_timers(visitor, namespaces).await?),
        Region::new("throughput", "card span-5", throughput(&fired)),
        Region::new("late-by", "card span-5", late_by(&fired)),
        Region::new("worst", "card span-12", worst(visitor, destinations)),
    ])
}

/// When the oldest timer was due that should have fired.
async fn oldest_overdue(visitor: &Visitor, namespaces: &[Namespace]) -> Result<Option<Timestamp>, Problem> {
    if namespaces.is_empty() && visitor.is_administrator() {
        return Ok(visitor.commands.cluster().await?.oldest_overdue);
    }
    let listed = visitor.commands.namespaces().await?.namespaces;
    let meant = listed.iter().filter(|listed| namespaces.is_empty() || namespaces.contains(&listed.count.namespace));
    Ok(meant.filter_map(|listed| listed.count.oldest_overdue).min())
}

fn next_fires(visitor: &Visitor, fields: &Fields, namespaces: &[Namespace], range: &Range, due: &DueBuckets) -> Markup {
    let step = Span::from_secs(range.step_minutes * 60);
    let bars: Vec<Bar> = due
        .buckets
        .iter()
        .map(|(from, timers)| {
            let to = from.saturating_add(step);
            let link = visitor.link_to_next_timers(&limited(&format!("status:pending due:{from}..{to}"), namespaces));
            Bar {
                value: *timers,
                title: format!("{}, from {} UTC", text::counted(*timers, "timer", "timers"), text::instant(*from, false)),
                link: Some(link),
            }
        })
        .collect();
    let labels: Vec<String> = range.labels.iter().map(ToString::to_string).collect();
    html! {
        header { h2 { "Next fires" } @if !due.is_complete { span.muted { "counted in part" } } @else if due.is_estimate { span.muted { "estimated" } }
            span.aside { span.segmented { @for other in &RANGES {
                a href=(visitor.link_to("", &fields.with("range", Some(other.name)))) aria-current=[(other.name == range.name).then_some("true")] { (other.name) }
            } } }
        }
        div.body {
            (chart::bars("Pending timers by the time of their next attempt", &bars, &labels))
        }
    }
}

/// Labels of the last hour: the script does not turn these into the zone of the viewer, so they count backwards.
fn hour_labels() -> Vec<String> {
    ["−60 min", "−40 min", "−20 min", "now"].map(str::to_owned).to_vec()
}

fn lateness(fired: &FiredBuckets) -> Markup {
    let line = |class, of: &dyn Fn(&Digest) -> Option<u64>| Line {
        class,
        values: fired.buckets.iter().map(|(_, digest)| of(digest).map(|micros| micros as f64)).collect(),
    };
    // A histogram is less exact than the latest of all.
    let quantile =
        |digest: &Digest, part: f64| digest.lateness.quantile(part).map(|micros| micros.min(digest.lateness_max_micros));
    let lines = [
        line("line-3", &|digest| (digest.fired > 0).then_some(digest.lateness_max_micros)),
        line("line-2", &|digest| quantile(digest, 0.99)),
        line("line-1", &|digest| quantile(digest, 0.5)),
    ];
    html! {
        header { h2 { "Lateness" } span.aside.legend { span { i {} "p50" } span { i.two {} "p99" } span { i.three {} "max" } } }
        div.body { (chart::lateness("How late calls began in the last hour: median, 99th percentile and the latest", &lines, &hour_labels())) }
    }
}

fn throughput(fired: &FiredBuckets) -> Markup {
    let line = |class, of: &dyn Fn(&Digest) -> u64| Line {
        class,
        values: fired.buckets.iter().map(|(_, digest)| Some(of(digest) as f64)).collect(),
    };
    let lines = [
        line("line-2", &|digest| digest.created),
        line("line-3", &|digest| digest.retried),
        line("line-4", &|digest| digest.failed),
        line("line-1", &|digest| digest.fired),
    ];
    html! {
        header { h2 { "Throughput" } span.aside.legend { span { i.two {} "created" } span { i {} "fired" } span { i.four {} "failed" } span { i.three {} "retried" } } }
        div.body { (chart::counts("Timers created, calls fired and retried, and timers failed, per minute in the last hour", &lines, &hour_labels())) }
    }
}

fn late_by(fired: &FiredBuckets) -> Markup {
    let mut hour = Digest::default();
    fired.buckets.iter().for_each(|(_, digest)| hour.add(digest));
    html! {
        header { h2 { "How late calls begin" } span.aside { "last hour" } }
        div.body {
            @if hour.lateness.count() == 0 { p.muted { "No call was made in the last hour." } }
            @else { (chart::histogram("Calls of the last hour by how late they began", &hour.lateness, "began late by")) }
        }
    }
}

async fn next_timers(visitor: &Visitor, namespaces: &[Namespace]) -> Result<Markup, Problem> {
    let mut filter = Filter { status: vec![Status::Pending], namespaces: namespaces.to_vec(), ..Filter::default() };
    filter.due.from = Some(visitor.now());
    let query = ListQuery { filter, sort: Sort::ExecuteAt, order: Order::Ascending, limit: NEXT_TIMERS, ..ListQuery::default() };
    let rows = timer_rows::read(visitor, visitor.commands.search(&query).await?.timers).await;
    let all = visitor.link_to_next_timers(&limited("status:pending", namespaces));
    let pending = |name: &str, value: &str| format!("status:pending {}", word(name, value));
    Ok(html! {
        header { h2 { "Next timers" } a.aside href=(all) { "All pending" } }
        @if rows.is_empty() {
            div.body { p.muted { "Nothing is waiting to fire." } }
        } @else {
            div.table { table {
                thead { tr { th { "Timer" } th.minor { "Namespace" } th.num { "Due" } th.minor { "Destination" } } }
                tbody { @for row in &rows {
                    tr {
                        td.cut.fill.name { a.mono href=(visitor.link(&format!("/timers/{}", row.summary.id))) { (timer_rows::name_of(&row.summary)) } }
                        td.cut.minor { a.cell href=(visitor.link_to_next_timers(&pending("ns:", row.summary.namespace.as_str()))) { (row.summary.namespace) } }
                        td.num { (distance(visitor, row.summary.execute_at)) }
                        td.cut.minor { @match &row.destination {
                            Some(destination) => { a.cell href=(visitor.link_to_next_timers(&limited(&pending("dest:", destination), namespaces))) { (destination) } }
                            None => { (row.summary.callback_kind) }
                        } }
                    }
                } }
            } }
        }
    })
}

/// The destinations that are not good, the worst first; the busiest where all are.
fn worst(visitor: &Visitor, mut destinations: Vec<DestinationStatus>) -> Markup {
    let rank = |health: DestinationHealth| match health {
        DestinationHealth::Failing => 0,
        DestinationHealth::Slow => 1,
        DestinationHealth::Good => 2,
        DestinationHealth::Silent => 3,
    };
    destinations.sort_by_key(|one| (rank(one.health), std::cmp::Reverse(one.failed_10m), std::cmp::Reverse(one.delivered_10m)));
    destinations.truncate(DESTINATIONS_SHOWN);
    html! {
        header { h2 { "Destinations" } a.aside href=(visitor.link("/destinations")) { "All" } }
        @if destinations.is_empty() {
            div.body { p.muted { "No receiver was called in the last day." } }
        } @else {
            (super::destinations::table(visitor, &destinations))
        }
    }
}

/// Says how to make the first timer, in an installation without timers.
fn first_steps(visitor: &Visitor) -> Markup {
    let receiver = visitor.shared.config.development.as_ref().map(|development| development.receiver.as_str());
    let url = format!("{}/hello", receiver.unwrap_or("https://your-service.example"));
    let call = format!(
        "curl -X POST {}/timers \\\n  -H 'X-API-Key: …' -H 'Content-Type: application/json' \\\n  -d '{{\"delay\": \"5s\", \"callback\": {{\"type\": \"http\", \"url\": \"{url}\"}}}}'",
        visitor.api()
    );
    html! {
        div.empty {
            h2 { "No timers yet" }
            p { "A timer calls a URL, or publishes a message, at the time that you name." }
            @if visitor.may_write() {
                @if receiver.is_some() {
                    form method="post" action=(visitor.link("/first")) { button.main { "Create one that fires in 5 s" } }
                } @else {
                    a.button.main href=(visitor.link_to("/timers/new", &Fields::from([("delay", "5s")]))) { "Create one that fires in 5 s" }
                }
            }
            p { "Or from a shell:" }
            pre tabindex="0" { (call) }
        }
    }
}

/// `POST /console/first`: a timer that fires before one's eyes, at the receiver of `timer dev`.
pub(crate) async fn first(visitor: Visitor) -> Result<Response, Problem> {
    let development = visitor.shared.config.development.as_ref().ok_or(Problem::NoSuchPage)?;
    let callback = format!(r#"{{"type":"http","url":"{}/hello","payload":{{"from":"the console"}}}}"#, development.receiver);
    let target = Target::Callback(Callback::from_json(&callback)?);
    let outcome = visitor.commands.create(NewTimerRequest::new(RequestedTime::After(Span::from_secs(5)), target)).await?;
    Ok(Redirect::to(&visitor.link(&format!("/timers/{}?done=create", outcome.timer().id()))).into_response())
}

#[cfg(test)]
mod tests {
    use crate::rig::Rig;

    #[tokio::test]
    async fn an_empty_installation_shows_how_to_begin() {
        let rig = Rig::new();
        let page = rig.get("/console").await;
        assert!(
            page.text.contains("No timers yet") && page.text.contains("curl -X POST http://127.0.0.1:8080/timers"),
            "{}",
            page.text
        );
        assert!(page.text.contains("/console/timers/new?delay=5s"));
        assert!(page.text.contains("<section id=\"first-steps\" class=\"card\" data-live>"), "{}", page.text);
        assert_eq!(rig.post("/console/first", "").await.status, 404, "there is no receiver");
    }

    #[tokio::test]
    async fn numbers_lead_to_the_timers_that_they_count() {
        let rig = Rig::new();
        rig.timer("k", "a").await;
        let page = rig.get("/console?range=24h").await;
        for part in ["Next fires", "Lateness", "Next timers", "aria-current=\"true\">24h"] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        assert_eq!(page.text.matches("class=\"hit\"").count(), 48);
        assert_eq!(rig.get("/console?ns=b").await.status, 200);
    }

    #[tokio::test]
    async fn the_numbers_of_one_namespace_lead_to_timers_of_that_namespace() {
        let rig = Rig::new();
        rig.timer("k", "a").await;
        rig.timer("tulip", "garden").await;
        let page = rig.get("/console?ns=a").await;
        let main = page.text.split("<main").nth(1).unwrap();
        let lists: Vec<_> = main.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let lists: Vec<_> = lists.into_iter().filter(|link| link.starts_with("/console/timers?")).collect();
        // Tiles, a bar for each minute of the hour, all that are pending, and the namespace and the destination of the next one.
        assert_eq!(lists.len(), 6 + 60 + 1 + 2, "{lists:?}");
        assert!(lists.iter().all(|link| link.contains("+ns%3Aa")), "{lists:?}");
        for words in ["status%3Acompleted+due%3A2029-12-31T00%3A00%3A00Z..+", "status%3Afailed+due%3A2029-12-31T00%3A00%3A00Z..+"]
        {
            assert!(lists.iter().any(|link| link.contains(words)), "{words}: {lists:?}");
        }
        for link in lists.iter().filter(|link| link.contains("pending")) {
            assert!(!rig.get(&link.replace("&amp;", "&")).await.text.contains("tulip"), "{link}");
        }
    }
}
