//! `/console/operations`: changes of many timers that run in the background.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use commands::{BulkOperation, BulkWork, OperationId, OperationState};
use domain::TimerId;
use maud::{Markup, html};

use crate::{
    frame::{self, Section},
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
                thead { tr { th { "State" } th { "What" } th { "By" } th.num { "Matched" } th.num { "Changed" } th.num { "Left alone" } th.num { "Errors" } th { "Started" } th.num { "Took" } th { "Filter" } } }
                tbody { @for operation in operations {
                    @let link = visitor.link(&format!("/operations/{}", operation.id.0));
                    tr data-row=(link) {
                        td { (state(operation.state)) }
                        td { a href=(link) { (BulkWork::name_in(&operation.work)) } }
                        td { (operation.by) }
                        td.num { (number(operation.matched)) }
                        td.num { (number(operation.changed)) }
                        td.num { (number(operation.skipped)) }
                        td.num { (number(operation.errors)) }
                        td { (text::time(visitor, operation.started_at)) }
                        td.num { @match operation.finished_at { Some(at) => { (span(at.since(operation.started_at))) } None => { (distance(visitor, operation.started_at)) } } }
                        td.cut.mono.muted { (filter(operation)) }
                    }
                } }
            } }
        }
    }
}

fn state(state: OperationState) -> Markup {
    html! { span class={ "status " (state.as_str()) } { (state.as_str()) } }
}

fn filter(operation: &BulkOperation) -> String {
    serde_json::to_string(&operation.filter).unwrap_or_default()
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
        h1 { (operation.work) }
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
    let handled = operation.changed + operation.skipped + operation.errors;
    let took = operation.finished_at.unwrap_or_else(|| visitor.now()).since(operation.started_at);
    let rate = handled as f64 / took.as_duration().as_secs_f64().max(1.0);
    html! {
        div.body.stack {
            progress.progress max=(operation.matched.max(1)) value=(handled.min(operation.matched)) aria-label="Progress" {}
            dl.facts {
                dt { "Handled" } dd { (number(handled)) " of " (number(operation.matched)) }
                dt { "Changed" } dd { (number(operation.changed)) }
                dt { "Left alone" } dd { (number(operation.skipped)) }
                dt { "Errors" } dd.bad[operation.errors > 0] { (number(operation.errors)) }
                dt { "Left" } dd { (number(operation.matched.saturating_sub(handled))) }
                dt { "Rate" } dd { (number(rate as u64)) " a second" }
                dt { "At most" } dd { (number(operation.expected_max)) }
                dt { "Started" } dd { (exact_time(operation.started_at)) }
                @if let Some(at) = operation.finished_at { dt { "Ended" } dd { (exact_time(at)) ", after " (span(at.since(operation.started_at))) } }
                @if let Some(error) = &operation.error { dt { "Failed because" } dd.bad { (error) } }
                dt { "Filter" } dd.mono { (filter(operation)) }
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
    use crate::rig::Rig;

    #[tokio::test]
    async fn an_operation_is_followed_and_stopped() {
        let rig = Rig::new();
        assert!(rig.get("/console/operations").await.text.contains("No operations"));
        for n in 0..1_001 {
            rig.timer(&n.to_string(), "a").await;
        }
        let started =
            rig.post("/console/operations/new", "do=cancel&filter=%7B%7D&expected_max=2000&count=1001&typed=1001").await;
        assert_eq!(started.status, 303, "{}", started.text);
        let path = started.headers["location"].to_str().unwrap().to_owned();
        let page = rig.get(&path).await;
        assert!(page.text.contains("running") && page.text.contains("0 of 1,001"), "{}", page.text);
        assert_eq!(rig.post(&format!("{path}/stop"), "").await.status, 303);
        assert!(rig.get("/console/operations").await.text.contains("stopped"));
        assert_eq!(rig.get("/console/operations/x").await.status, 404);
    }
}
