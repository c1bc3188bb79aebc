//! `/console/inbox`: what the receiver of `timer dev` got, what it answers, and the clock. For the administrator.

use std::time::Duration;

use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use commands::CommandError;
use dev::{ANSWER_DELAY_MAX, Advance, AdvanceError, Answer, CALLS_KEPT, Call, DevTools, InboxQuery, Reply};
use domain::{Invalid, Span};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};

use crate::{
    fields::{Fields, Form},
    frame::{self, Section},
    problem::Problem,
    region::Region,
    text::{self, exact_time, number, span},
    visitor::Visitor,
};

/// How many calls are shown: the latest.
const SHOWN: usize = 100;
/// How long a viewer waits for the clock.
const ADVANCE_TIME_MAX: Duration = Duration::from_secs(20);
const BODY_BYTES_SHOWN: usize = 64 * 1024;

fn tools(visitor: &Visitor) -> Result<DevTools, Problem> {
    let tools = visitor.shared.config.dev.clone().ok_or(Problem::NoSuchPage)?;
    visitor.commands.check_administrator()?;
    Ok(tools)
}

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Markup, Problem> {
    let regions = regions(&visitor).await?;
    let notice = match fields.get("done") {
        Some("clock") => Some(advanced(&fields)),
        Some("answers") => Some("From now on the receiver answers so.".to_owned()),
        Some("clear") => Some("The inbox is empty.".to_owned()),
        _ => None,
    };
    let body = html! {
        div.title { h1 { "Inbox" } span.muted { "what the receiver of timer dev got" } }
        @if let Some(notice) = notice { p.notice role="status" { (notice) } }
        div.grid {
            section.card.span-5 { header { h2 { "Clock" } span.aside { (exact_time(&visitor, visitor.now())) } } div.body { (clock_form(&visitor)) } }
            section.card.span-7 { header { h2 { "Answers" } } div.body { (answers_form(&visitor)) } }
        }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Inbox), "Inbox", body))
}

pub(crate) async fn regions(visitor: &Visitor) -> Result<Vec<Region>, Problem> {
    let tools = tools(visitor)?;
    let mut calls = tools.inbox.list(&InboxQuery { limit: CALLS_KEPT, ..InboxQuery::default() });
    calls.reverse();
    let count = calls.len();
    calls.truncate(SHOWN);
    let body = html! {
        header { h2 { "Calls" } span.muted { (number(count as u64)) } span.aside {
            form.plain method="post" action=(visitor.link("/inbox/clear")) { button.quiet { "Empty" } }
        } }
        @if calls.is_empty() {
            div.empty { h2 { "No calls yet" } p { "Let a timer call the receiver, and it appears here." }
                form method="post" action=(visitor.link("/first")) { button.main { "Create one that fires in 5 s" } } }
        } @else {
            (table(visitor, &calls))
        }
    };
    Ok(vec![Region::new("inbox-calls", "card", body)])
}

fn table(visitor: &Visitor, calls: &[Call]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Calls" { table {
            thead { tr { th.num { "#" } th { "Time" } th.num { "Lateness" } th { "Timer" } th.num { "Attempt" } th { "Call" } th { "Signature" } th { "Answered" } th { "Repeats" } th { "Content" } } }
            tbody { @for Call { seq, arrival, duplicate_of } in calls {
                tr {
                    td.num { (seq) }
                    td { (exact_time(visitor, arrival.at)) }
                    td.num { (arrival.lateness_ms.map(|millis| span(Span::from_micros_clamped(millis.saturating_mul(1_000)))).unwrap_or_default()) }
                    td.cut { @if let Some(id) = &arrival.timer_id { a.mono href=(visitor.link(&format!("/timers/{}", text::in_path(id)))) { (id) } } }
                    td.num { (arrival.attempt.map(number).unwrap_or_default()) }
                    td.cut.mono { (arrival.method) " " (arrival.path) }
                    td { @match arrival.signature_valid {
                        Some(true) => { span.status.completed { "valid" } }
                        Some(false) => { span.status.failed { "wrong" } }
                        None => { span.muted { "none" } }
                    } }
                    td { @match arrival.answered { Some(status) => { span class={ "status " (if status < 400 { "completed" } else { "failed" }) } { (status) } } None => { span.status.expired { "never" } } } }
                    td { @if let Some(first) = duplicate_of { "#" (first) } }
                    td.wrap { details { summary { (text::counted(arrival.body.len() as u64, "byte", "bytes")) }
                        @for (name, value) in &arrival.headers { div.mono.muted { (name) ": " (value) } }
                        pre tabindex="0" { (text::cut(&arrival.body, BODY_BYTES_SHOWN)) }
                    } }
                }
            } }
        } }
    }
}

fn clock_form(visitor: &Visitor) -> Markup {
    html! {
        form.stack method="post" action=(visitor.link("/inbox/clock")) {
            p.muted { "Moves the clock of this service from due time to due time. Everything fires in order." }
            div.chips {
                button name="to" value="1h" { "+ 1 h" }
                button name="to" value="1d" { "+ 1 d" }
                button name="to" value="30d" { "+ 30 d" }
                button.main name="to" value="next" { "To the next fire" }
                button name="to" value="idle" { "Until nothing is pending" }
            }
        }
    }
}

fn answers_form(visitor: &Visitor) -> Markup {
    html! {
        form.stack method="post" action=(visitor.link("/inbox/answers")) {
            div.pair.tight {
                label { "Path" span.hint { "Empty for every path" } input type="text" name="path" placeholder="/hello" autocomplete="off"; }
                label { "Status" input type="number" name="status" value="503" min="200" max="599"; }
                label { "Times" span.hint { "Empty for every call" } input type="number" name="times" value="2" min="1"; }
                label { "Delay" input type="text" name="delay" value="0s"; }
                label { "Retry-After" span.hint { "Seconds" } input type="number" name="retry_after" min="0"; }
            }
            label { "Body" input type="text" name="body" autocomplete="off"; }
            label.inline { input type="checkbox" name="hang"; "never answer" }
            div.actions { button name="reset" value="1" { "Answer 200 again" } button.main { "Answer so" } }
        }
    }
}

/// `POST /console/inbox/answers`: takes the place of all answers that were programmed.
pub(crate) async fn program(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    let tools = tools(&visitor)?;
    tools.answers.replace(if form.get("reset").is_some() { Vec::new() } else { vec![answer_of(&form)?] });
    Ok(Redirect::to(&visitor.link("/inbox?done=answers")).into_response())
}

fn answer_of(form: &Fields) -> Result<Answer, Invalid> {
    let whole = |name: &str| {
        form.get(name).map(|text| text.parse::<u64>().map_err(|_| Invalid::new(name, "must be a whole number"))).transpose()
    };
    let status = whole("status")?.and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| Invalid::new("status", "must be from 200 to 599"))?;
    let delay = form.get("delay").map(|text| Span::parse("delay", text)).transpose()?.unwrap_or_default().as_duration();
    if delay > ANSWER_DELAY_MAX {
        return Err(Invalid::new("delay", format!("must not be longer than {}s", ANSWER_DELAY_MAX.as_secs())));
    }
    let mut headers = HeaderMap::new();
    if let Some(seconds) = whole("retry_after")? {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    let body = Bytes::from(form.get("body").unwrap_or_default().to_owned());
    Ok(Answer {
        path: form.get("path").map(str::to_owned),
        times: whole("times")?,
        delay,
        reply: form.get("hang").is_none().then_some(Reply { status, headers, body }),
    })
}

/// `POST /console/inbox/clock`.
pub(crate) async fn advance(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    let tools = tools(&visitor)?;
    let by = match form.get("to") {
        Some("next") => Advance::UntilNext,
        Some("idle") => Advance::UntilIdle,
        text => Advance::By(Span::parse("to", text.unwrap_or_default())?),
    };
    let moved = tools.clock.advance(by, ADVANCE_TIME_MAX).await.map_err(|error| match error {
        AdvanceError::NotMovable => Problem::from(Invalid::new("the clock", "cannot be moved: the database has one of its own")),
        AdvanceError::Past => Invalid::new("the clock", "must not be set back").into(),
        AdvanceError::Store(cause) => {
            tracing::warn!(%cause, "the clock was not moved");
            CommandError::from(Invalid::new("the clock", "was not moved: the store does not answer")).into()
        }
    })?;
    let [fired, pending] = [moved.fired, moved.pending].map(|count| count.to_string());
    let told = Fields::from([("done", "clock"), ("fired", fired.as_str()), ("pending", pending.as_str())]);
    Ok(Redirect::to(&visitor.link_to("/inbox", &told)).into_response())
}

fn advanced(fields: &Fields) -> String {
    let count = |name: &str| fields.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
    format!(
        "The clock was moved: {}, {} pending.",
        text::counted(count("fired"), "call was made", "calls were made"),
        number(count("pending"))
    )
}

/// `POST /console/inbox/clear`.
pub(crate) async fn clear(visitor: Visitor) -> Result<Response, Problem> {
    tools(&visitor)?.inbox.clear();
    Ok(Redirect::to(&visitor.link("/inbox?done=clear")).into_response())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use dev::{AdvanceClock, Advanced, Answers, Arrival, Inbox};
    use domain::Rights;

    use super::*;
    use crate::{
        ConsoleConfig,
        rig::{NOW, Rig, config},
    };

    struct StillClock;

    #[async_trait::async_trait]
    impl AdvanceClock for StillClock {
        async fn advance(&self, by: Advance, _: Duration) -> Result<Advanced, AdvanceError> {
            match by {
                Advance::UntilNext => Ok(Advanced {
                    now: NOW,
                    fired: 1,
                    completed: 1,
                    failed: 0,
                    expired: 0,
                    pending: 2,
                    next: None,
                    complete: true,
                }),
                _ => Err(AdvanceError::NotMovable),
            }
        }
    }

    fn arrival() -> Arrival {
        Arrival {
            at: NOW,
            lateness_ms: Some(3),
            timer_id: Some("01890a5d-ac96-774b-bcce-b302099a8057".to_owned()),
            attempt: Some(1),
            method: "POST".to_owned(),
            path: "/hello".to_owned(),
            headers: BTreeMap::from([("x-a".to_owned(), "<b>".to_owned())]),
            body: "</pre><script>alert(1)</script>".to_owned(),
            signature_valid: Some(true),
            answered: Some(200),
        }
    }

    #[tokio::test]
    async fn calls_are_shown_answers_programmed_and_the_clock_moved() {
        let tools =
            DevTools { inbox: Arc::new(Inbox::default()), answers: Arc::new(Answers::default()), clock: Arc::new(StillClock) };
        let rig = Rig::configured(ConsoleConfig { dev: Some(tools.clone()), ..config() });
        assert!(rig.get("/console/inbox").await.text.contains("No calls yet"));
        tools.inbox.record(arrival());
        let page = rig.get("/console/inbox").await;
        assert!(
            page.text.contains("POST /hello") && !page.text.contains("<script>alert") && page.text.contains("&lt;/pre&gt;"),
            "{}",
            page.text
        );

        assert_eq!(rig.post("/console/inbox/answers", "path=/hello&status=503&times=2&retry_after=7&delay=1s").await.status, 303);
        let answer = tools.answers.take("/hello").unwrap();
        assert_eq!((answer.delay, answer.times), (Duration::from_secs(1), Some(1)));
        let reply = answer.reply.unwrap();
        assert_eq!((reply.status.as_u16(), &reply.headers["retry-after"]), (503, &HeaderValue::from_static("7")));
        assert_eq!(rig.post("/console/inbox/answers", "status=99").await.status, 400);
        assert_eq!(rig.post("/console/inbox/answers", "reset=1").await.status, 303);
        assert!(tools.answers.take("/hello").is_none());

        let moved = rig.post("/console/inbox/clock", "to=next").await;
        let page = rig.get(moved.headers["location"].to_str().unwrap()).await;
        assert!(page.text.contains("1 call was made, 2 pending"), "{}", page.text);
        assert_eq!(rig.post("/console/inbox/clock", "to=1h").await.status, 400);
        assert_eq!(rig.post("/console/inbox/clear", "").await.status, 303);
        assert!(tools.inbox.list(&InboxQuery { limit: 1, ..InboxQuery::default() }).is_empty());

        let (_, cookie) = rig.holder(&["a"], Rights::Write).await;
        assert_eq!(rig.get_as(&cookie, "/console/inbox").await.status, 403);
        assert_eq!(rig.post_as(&cookie, "/console/inbox/clock", "to=next").await.status, 403);
    }

    #[tokio::test]
    async fn there_is_no_inbox_outside_of_development() {
        let rig = Rig::new();
        assert_eq!(rig.get("/console/inbox").await.status, 404);
        assert!(!rig.get("/console").await.text.contains(">Inbox<"));
    }
}
