//! `/console/operations`: changes of many timers that run in the background.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use commands::{BulkOperation, BulkWork, OperationId, OperationState, Reschedule, Shift};
use domain::{Missed, TimerId};
use maud::{Markup, html};

use crate::{
    filter_words::words_of,
    frame::{self, Section},
    pages::bulk::WORKS,
    problem::Problem,
    region::Region,
    text::{self, distance, exact_time, number, span},
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let body = html! {
        div.title { h1 { "Operations" } span.muted { "changes of many timers at once" } }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Operations), "Operations", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let operations = visitor.commands.operations().await?;
    Ok(vec![Region::new("operations", "card", list(visitor, &operations))])
}

fn list(visitor: &Visitor, operations: &[BulkOperation]) -> Markup {
    html! {
        @if operations.is_empty() {
            div.empty { h2 { "No operations" } p { "Filter the list of timers, then choose what to do with all that match. Up to a thousand are changed at once; more become an operation." }
                a.button href=(visitor.link("/timers")) { "To the timers" } }
        } @else {
            div.table tabindex="0" role="region" aria-label="Operations" { table {
                thead { tr { th { "State" } th { "What" } th.extra { "By" } th.num.minor { "Matched" } th.num { "Changed" } th.num.extra { "Left alone" } th.num.minor { "Errors" } th.minor { "Started" } th.num.minor { "Took" } th.extra { "Filter" } } }
                tbody { @for operation in operations {
                    @let link = visitor.link(&format!("/operations/{}", operation.id.0));
                    tr data-row=(link) {
                        td { (state(operation.state)) }
                        @let words = filter(operation);
                        @let filtered = html! { a.cell href=(visitor.link_to_timers(&words)) { @if words.is_empty() { "every timer" } @else { (words) } } };
                        td.cut.fill { a href=(link) { (title(&operation.work)) } span.under.mono title=(words) { (filtered) } }
                        td.cut.extra { (operation.by) }
                        td.num.minor { (matched(operation)) }
                        td.num { (number(operation.changed)) }
                        td.num.extra { (number(operation.skipped)) }
                        td.num.minor { (number(operation.errors)) }
                        td.minor { (text::time(visitor, operation.started_at)) }
                        td.num.minor { @match operation.finished_at { Some(at) => { (span(at.since(operation.started_at))) } None => { (distance(visitor, operation.started_at)) } } }
                        td.cut.fill.mono.muted.extra title=(words) { (filtered) }
                    }
                } }
            } }
        }
    }
}

fn state(state: OperationState) -> Markup {
    html! { span class={ "status " (state.as_str()) } { (state.as_str()) } }
}

/// The words of its filter. An operation leaves timers alone that are registered after its start; that goes without saying.
fn filter(operation: &BulkOperation) -> String {
    let mut filter = operation.filter.clone();
    filter.created.to = filter.created.to.filter(|to| *to <= operation.started_at);
    words_of(&filter)
}

/// What an operation does, as a viewer would say it.
fn title(work: &str) -> String {
    let named = |name: &str| {
        WORKS.iter().find(|(known, ..)| *known == name).map_or_else(|| name.to_owned(), |(_, title, _)| (*title).to_owned())
    };
    match BulkWork::from_text(work) {
        Some(BulkWork::Reschedule(Reschedule::At(at))) => format!("Reschedule to {} UTC", text::instant(at, false)),
        Some(BulkWork::Reschedule(Reschedule::Shift(Shift { by, is_earlier }))) => {
            format!("Reschedule by {}{}", if is_earlier { '−' } else { '+' }, span(by))
        }
        Some(BulkWork::Reschedule(Reschedule::Spread(over))) => format!("Reschedule, spread over {}", span(over)),
        Some(BulkWork::Retry { over: Some(over) }) => format!("Retry, spread over {}", span(over)),
        Some(BulkWork::Pause { note: Some(note) }) => format!("Pause: {note}"),
        Some(BulkWork::Resume { missed: Missed::Expire }) => "Resume, what was missed expires".to_owned(),
        Some(work) => named(work.name()),
        None => named(BulkWork::name_in(work)),
    }
}

const fn handled(operation: &BulkOperation) -> u64 {
    operation.changed + operation.skipped + operation.errors
}

/// How many timers it meets: those that it has handled once it is done, else what the store has estimated.
fn matched(operation: &BulkOperation) -> String {
    match operation.state {
        OperationState::Done => number(handled(operation)),
        _ => format!("about {}", number(operation.matched.max(handled(operation)))),
    }
}

/// `GET /console/operations/{id}`.
pub(crate) async fn show_one(visitor: Visitor, Path(id): Path<String>) -> Result<Markup, Problem> {
    let regions = regions_of_one(&visitor, &id).await?;
    let body = html! { @for region in &regions { (region) } };
    Ok(frame::page(&visitor, Some(Section::Operations), "Operation", body))
}

pub(crate) async fn regions_of_one(visitor: &Visitor, id: &str) -> Result<Vec<Region>, Problem> {
    let operation = visitor.commands.operation(parse(id)?).await?;
    Ok(vec![
        Region::new("operation-head", "title", head(visitor, &operation)),
        Region::new("operation", "card", progress(visitor, &operation)),
    ])
}

fn parse(id: &str) -> Result<OperationId, Problem> {
    TimerId::parse("id", id).map(OperationId).map_err(|_| Problem::NoSuchPage)
}

fn head(visitor: &Visitor, operation: &BulkOperation) -> Markup {
    html! {
        h1 { (title(&operation.work)) }
        (state(operation.state))
        span.muted { "by " (operation.by) ", started " (distance(visitor, operation.started_at)) }
        @if operation.state == OperationState::Running && visitor.may_write() {
            span.actions {
                form method="post" action=(visitor.link(&format!("/operations/{}/stop", operation.id.0))) { button.danger { "Stop" } }
            }
        }
    }
}

fn progress(visitor: &Visitor, operation: &BulkOperation) -> Markup {
    let handled = handled(operation);
    let is_running = operation.state == OperationState::Running;
    // While it runs, something is left to do, whatever the store has estimated.
    let all = if is_running { operation.matched.max(handled + 1) } else { handled.max(1) };
    let took = operation.finished_at.unwrap_or_else(|| visitor.now()).since(operation.started_at);
    let rate = handled as f64 / took.as_duration().as_secs_f64().max(1.0);
    let words = filter(operation);
    html! {
        div.body.stack {
            @if is_running { progress.progress max=(all) value=(handled) aria-label="Progress" {} }
            dl.facts {
                dt { "Handled" } dd { (number(handled)) @if is_running { " of " (matched(operation)) } }
                dt { "Changed" } dd { (number(operation.changed)) }
                dt { "Left alone" } dd { (number(operation.skipped)) }
                dt { "Errors" } dd.bad[operation.errors > 0] { (number(operation.errors)) }
                @if is_running { dt { "Left" } dd { "about " (number(operation.matched.saturating_sub(handled))) } }
                dt { "Rate" } dd { (number(rate as u64)) " a second" }
                dt { "At most" } dd { (number(operation.expected_max)) }
                dt { "Started" } dd { (exact_time(visitor, operation.started_at)) }
                @if let Some(at) = operation.finished_at { dt { "Ended" } dd { (exact_time(visitor, at)) ", after " (span(at.since(operation.started_at))) } }
                @if let Some(error) = &operation.error { dt { "Failed because" } dd.bad { (error) } }
                dt { "Filter" } dd { a.mono href=(visitor.link_to_timers(&words)) { @if words.is_empty() { "every timer" } @else { (words) } } }
            }
        }
    }
}

/// `POST /console/operations/{id}/stop`.
pub(crate) async fn stop(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Problem> {
    let operation = visitor.commands.stop_operation(parse(&id)?).await?;
    Ok(Redirect::to(&visitor.link(&format!("/operations/{}", operation.id.0))).into_response())
}

#[cfg(test)]
mod tests {
    use super::title;
    use crate::rig::Rig;

    #[test]
    fn work_is_told_as_a_viewer_would_say_it() {
        for (work, told) in [
            ("cancel", "Cancel"),
            ("fire", "Fire now"),
            ("reschedule shift +3600000000us", "Reschedule by +1 h"),
            ("reschedule shift -600000000us", "Reschedule by −10 min"),
            ("reschedule spread 600000000us", "Reschedule, spread over 10 min"),
            ("reschedule at 2030-01-31T12:00:00Z", "Reschedule to 31 Jan 2030 12:00:00 UTC"),
            ("retry spread 600000000us", "Retry, spread over 10 min"),
            ("pause an audit", "Pause: an audit"),
            ("resume expire", "Resume, what was missed expires"),
            ("explode", "explode"),
        ] {
            assert_eq!(title(work), told);
        }
    }

    #[tokio::test]
    async fn an_operation_is_followed_and_stopped() {
        let rig = Rig::new();
        assert!(rig.get("/console/operations").await.text.contains("No operations"));
        for n in 0..1_001 {
            rig.timer(&n.to_string(), "a").await;
        }
        let started = rig
            .post(
                "/console/operations/new",
                "do=cancel&filter=%7B%22namespace%22%3A%5B%22a%22%5D%7D&expected_max=2000&count=1001&typed=1001",
            )
            .await;
        assert_eq!(started.status, 303, "{}", started.text);
        let path = started.headers["location"].to_str().unwrap().to_owned();
        let page = rig.get(&path).await;
        assert!(page.text.contains("running") && page.text.contains("0 of about 1,001"), "{}", page.text);
        assert_eq!(rig.post(&format!("{path}/stop"), "").await.status, 303);
        let list = rig.get("/console/operations").await.text;
        assert!(list.contains("stopped") && list.contains("href=\"/console/timers?q=ns%3Aa\""), "{list}");
        assert_eq!(rig.get("/console/operations/x").await.status, 404);
    }
}
