//! The attempts of a timer: those that are recorded, and those that may follow.

use domain::{AnswerBody, Attempt, RetryPolicy, Span, Status, Timer, Timestamp};
use maud::{Markup, html};

use crate::{
    chart::{self, Mark},
    config::Payloads,
    retry_curve::{Planned, planned_mark},
    text::{self, exact_time, time},
    timer_rows,
    visitor::Visitor,
};

/// How many of the attempts that may follow are told with their time.
const TOLD_MAX: usize = 6;

/// About when a timer is tried again whose last attempt is recorded: a retry is a little earlier or later than its policy says, and
/// as late as its receiver asks for.
pub(crate) fn next_attempt(timer: &Timer, attempts: &[Attempt]) -> Option<Timestamp> {
    let last = attempts.last().filter(|last| timer.status == Status::Pending && last.number == timer.attempt)?;
    let policy = timer.definition.retries()?;
    Some(ended(last).saturating_add(policy.interval_after(last.number)))
}

fn ended(attempt: &Attempt) -> Timestamp {
    attempt.started_at.saturating_add(attempt.took)
}

/// What came of an attempt, in words.
pub(crate) fn result(attempt: &Attempt) -> String {
    match attempt.status {
        Some(status) if attempt.outcome == "delivered" => format!("delivered, {status}"),
        Some(status) => format!("answered {status}"),
        None => attempt.outcome.replace('_', " "),
    }
}

pub(crate) fn card(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Markup {
    html! {
        header { h2 { "Attempts" } span.aside { (timer_rows::attempts(timer.attempt, Some(timer_rows::attempts_max(timer)))) " made" } }
        @if attempts.is_empty() {
            div.body { p.muted {
                @if timer.attempt == 0 { "None yet." } @else { "None is recorded: the setting ATTEMPTS says which ones are." }
            } }
        } @else {
            (table(visitor, timer, attempts))
        }
        @if let Some(policy) = timer.definition.retries().filter(|_| matches!(timer.status, Status::Pending | Status::Paused)) {
            (what_is_left(visitor, timer, attempts, &policy))
        }
    }
}

fn table(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Markup {
    let next = next_attempt(timer, attempts);
    html! {
        div.table tabindex="0" role="region" aria-label="Attempts" { table {
            thead { tr { th.num { "#" } th.minor { "Node" } th.minor { "Started" } th.num.extra { "After due" } th.num { "Took" } th { "Result" } th.extra { "Next at" } th { "Detail" } } }
            tbody { @for (at, attempt) in attempts.iter().enumerate() {
                tr {
                    td.num { (attempt.number) }
                    td.cut.minor { @match &attempt.node { Some(node) => { (node) } None => { span.muted { "–" } } } }
                    td.minor { (exact_time(visitor, attempt.started_at)) }
                    td.num.extra { (text::span(attempt.started_at.since(timer.execute_at))) }
                    td.num { (text::span(attempt.took)) }
                    td { span class={ "status " (if attempt.outcome == "delivered" { "completed" } else { "failed" }) } {
                        (result(attempt))
                    } }
                    td.extra { @match (attempts.get(at + 1), next) {
                        (Some(following), _) => { (time(visitor, following.started_at)) }
                        (None, Some(next)) => { span.muted { "about " } (time(visitor, next)) }
                        (None, None) => { span.muted { "–" } }
                    } }
                    td.wrap.fill { (answer(visitor, attempt)) }
                }
            } }
        } }
    }
}

/// The attempts that were made and those that its policy still permits, on a line of time.
fn what_is_left(visitor: &Visitor, timer: &Timer, attempts: &[Attempt], policy: &RetryPolicy) -> Markup {
    let since_due = |at: Timestamp| at.since(timer.execute_at);
    let last = attempts.last().filter(|last| last.number == timer.attempt);
    // Without a record of the last attempt there is no telling when the next one is made.
    let planned = match (timer.attempt, last) {
        (0, _) => Planned::after(policy, 0, Span::ZERO),
        (made, Some(last)) => Planned::after(policy, made, since_due(ended(last))),
        (_, None) => return html! {},
    };
    let made = attempts.iter().map(|attempt| Mark {
        at: since_due(attempt.started_at),
        class: if attempt.outcome == "delivered" { "good" } else { "bad" },
        title: format!("Attempt {}: {}", attempt.number, result(attempt)),
    });
    let marks: Vec<Mark> = made.chain(planned.attempts.iter().map(|(number, at)| planned_mark(*number, *at))).collect();
    let retries: Vec<_> = planned.attempts.iter().filter(|(number, _)| *number > 1).collect();
    html! {
        @if !retries.is_empty() {
            div.body.stack {
                (chart::moments("Attempts that were made, and those that may follow, by the time after the due time", &marks))
                p.muted {
                    @if timer.attempt == 0 { "If its call fails, it is made again about " } @else { "If calls go on failing, they are made again about " }
                    @for (at, (_, after)) in retries.iter().take(TOLD_MAX).enumerate() {
                        @if at > 0 { ", " }
                        (time(visitor, timer.execute_at.saturating_add(*after)))
                    }
                    @if retries.len() > TOLD_MAX || planned.more != Some(0) { ", …" }
                    @match planned.more {
                        None => { " without end" }
                        Some(more) => { ": " (text::counted(retries.len() as u64 + u64::from(more), "retry is", "retries are")) " left" }
                    }
                    "."
                }
            }
        }
    }
}

fn answer(visitor: &Visitor, attempt: &Attempt) -> Markup {
    let detail = attempt.detail.as_deref().unwrap_or_default();
    html! {
        @match &attempt.answer {
            Some(answer) if visitor.payloads() != Payloads::Off => {
                // A timer that is retried by hand counts its attempts from 1 again.
                details id={ "attempt-" (attempt.started_at.as_micros()) } {
                    summary { (detail) @if detail.is_empty() { "Answer" } }
                    @for (name, value) in &answer.headers { div.mono.muted { (name) ": " (value) } }
                    @match &answer.body {
                        AnswerBody::Text(text) => { pre tabindex="0" { (text) } }
                        AnswerBody::Bytes(bytes) => { p.muted { (bytes.len()) " bytes that are not text" } }
                    }
                }
            }
            _ => { span.muted { (detail) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Clock, Next, ReceivedAnswer, Shard};
    use store::{Claim, ClaimToken, Member, NodeId, OnLocked, Settlement, ShardCursor};

    use super::*;
    use crate::rig::Rig;

    /// Lets the first attempt of everything fail, and the next one follow.
    async fn fail_first(rig: &Rig) {
        rig.store.heartbeat(&Member::new(NodeId(1)), Span::from_secs(60)).await.unwrap();
        let shard_leases = rig.store.acquire(NodeId(1), &[Shard(0)]).await.unwrap();
        let entries = rig.store.due(&[ShardCursor { shard: Shard(0), after: None }], Timestamp::MAX, 10).await.unwrap();
        let claim = Claim { token: ClaimToken(7), shard_leases, lease: Span::from_secs(60), on_locked: OnLocked::Skip };
        let claimed = rig.store.claim(&claim, &entries).await.unwrap();
        let now = rig.clock.now();
        let attempt = Attempt {
            number: 1,
            started_at: now,
            took: Span::from_secs(2),
            outcome: "status_5xx".to_owned(),
            status: Some(503),
            detail: Some("try later".to_owned()),
            node: Some("host-1:8080".to_owned()),
            answer: Some(ReceivedAnswer::new(Vec::new(), b"try later")),
        };
        let next =
            Next::Pending { at: now.saturating_add(Span::from_secs(32)), attempt: 1, error: Some("answered 503".to_owned()) };
        let done: Vec<_> =
            claimed.iter().map(|claimed| Settlement { attempt: Some(attempt.clone()), ..claimed.settle(next.clone()) }).collect();
        assert!(rig.store.settle(&done).await.unwrap().iter().all(|counted| *counted));
    }

    #[tokio::test]
    async fn what_was_tried_and_what_may_follow_is_shown() {
        let rig = Rig::new();
        let form = "when=delay&delay=1h&kind=http&url=https%3A%2F%2Fapi.example&max_retries=3&namespace=a";
        let created = rig.post("/console/timers/new", form).await;
        let path = created.headers["location"].to_str().unwrap().to_owned();
        let page = rig.get(&path).await.text;
        assert!(page.contains("If its call fails, it is made again about ") && page.contains(": 3 retries are left."), "{page}");
        assert!(page.contains("class=\"gap\">1 h<"), "the life line has durations: {page}");
        rig.clock.advance(Span::from_secs(3600));
        fail_first(&rig).await;
        let page = rig.get(&path).await.text;
        assert_eq!((page.matches("mark bad").count(), page.matches("answered 503").count() >= 2), (2, true), "{page}");
        assert!(page.contains("If calls go on failing") && page.contains(": 3 retries are left."), "{page}");
        let next = page.split("aria-label=\"Attempts\"").nth(1).unwrap();
        assert!(next.contains("<td class=\"num\">1</td><td class=\"cut minor\">host-1:8080</td>"), "{next}");
        assert!(next.contains("about </span><time datetime=\"2030-01-01T01:00:32Z\""), "{next}");
        assert!(next.contains("<details id=\"attempt-1893459600000000\">"), "a live page knows it again: {next}");
        let second = page.split("<dd><pre").nth(1).unwrap();
        assert!(second.contains(".1893459600.</pre>"), "the signed text has the time of the last call: {second}");
    }
}
