//! `/console/inbox`: what the receiver of `timer dev` got, what it answers, and the clock. For the administrator.

use std::time::Duration;

use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use commands::{CommandError, EarliestAllowed, NewTimerRequest, Target};
use dev::{ANSWER_DELAY_MAX, ANSWERS_MAX, Advance, AdvanceError, Answer, Call, DevTools, Reply};
use domain::{Callback, Invalid, JsonText, RequestedTime, Span, limits};
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

/// How many calls a page shows, the latest first.
const SHOWN: usize = 100;
/// How long a viewer waits for the clock.
const ADVANCE_TIME_MAX: Duration = Duration::from_secs(20);
const BODY_BYTES_SHOWN: usize = 64 * 1024;
/// How much of a body is told before it is opened.
const BODY_CHARS_TOLD: usize = 60;

fn tools(visitor: &Visitor) -> Result<DevTools, Problem> {
    let tools = visitor.shared.config.dev.clone().ok_or(Problem::NoSuchPage)?;
    visitor.commands.check_administrator()?;
    Ok(tools)
}

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Markup, Problem> {
    let tools = tools(&visitor)?;
    let regions = regions(&visitor, &fields).await?;
    let notice = match fields.get("done") {
        Some("clock") => Some(advanced(&fields)),
        Some("answers") => Some("The receiver gives this answer from now on.".to_owned()),
        Some("remove") => Some("From now on the receiver answers 200 there.".to_owned()),
        Some("clear") => Some("The inbox is empty.".to_owned()),
        _ => None,
    };
    let body = html! {
        div.title { h1 { "Inbox" } span.muted { "what the receiver of timer dev got" } }
        @if let Some(notice) = notice { p.notice role="status" { (notice) } }
        div.grid {
            section.card.span-5 { header { h2 { "Clock" } span.aside { (exact_time(&visitor, visitor.now())) } } div.body { (clock_form(&visitor)) } }
            section.card.span-7 { header { h2 { "Answers" } } div.body { (answers_form(&visitor)) } (programmed(&visitor, &tools.answers.list())) }
        }
        @for region in &regions { (region) }
    };
    Ok(frame::page(&visitor, Some(Section::Inbox), "Inbox", body))
}

pub(crate) async fn regions(visitor: &Visitor, fields: &Fields) -> Result<Vec<Region>, Problem> {
    let tools = tools(visitor)?;
    let before = fields.get("before").and_then(|seq| seq.parse().ok());
    let (mut calls, count) = tools.inbox.latest(before, SHOWN + 1);
    let has_older = calls.len() > SHOWN;
    calls.truncate(SHOWN);
    let older = calls.last().filter(|_| has_older).map(|last| last.seq.to_string());
    let body = html! {
        header { h2 { "Calls" } span.muted { (number(count as u64)) } span.aside {
            form.plain method="post" action=(visitor.link("/inbox/clear")) { button.quiet { "Empty the inbox" } }
        } }
        @if calls.is_empty() {
            div.empty { h2 { "No calls yet" } p { "Let a timer call the receiver, and it appears here." }
                form method="post" action=(visitor.link("/first")) { button.main { "Create one that fires in 5 s" } } }
        } @else {
            (table(visitor, &calls))
        }
        div.pages { span.actions {
            @if before.is_some() { a.button rel="prev" href=(visitor.link("/inbox")) { "Latest" } }
            @if let Some(older) = older { a.button rel="next" href=(visitor.link_to("/inbox", &Fields::from([("before", older.as_str())]))) { "Older" } }
        } }
    };
    Ok(vec![Region::new("inbox-calls", "card", body)])
}

fn table(visitor: &Visitor, calls: &[Call]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Calls" { table {
            thead { tr { th.num { "#" } th.minor { "Time" } th.num.minor { "Lateness" } th { "Timer" } th.num.extra { "Attempt" } th { "Call" } th.minor { "Signature" } th { "Answered" } } }
            @for call in calls { tbody { (head_of(visitor, call)) (content_of(visitor, call)) } }
        } }
    }
}

fn head_of(visitor: &Visitor, Call { seq, arrival, .. }: &Call) -> Markup {
    let lateness = arrival.lateness_ms.map(|millis| span(Span::from_micros_clamped(millis.saturating_mul(1_000))));
    html! {
        tr {
            td.num { (seq) }
            td.minor { (exact_time(visitor, arrival.at)) }
            td.num.minor { (lateness.unwrap_or_default()) }
            td.cut.fill { @if let Some(id) = &arrival.timer_id { a.mono href=(visitor.link(&format!("/timers/{}", text::in_path(id)))) title=(id) { (id) } } }
            td.num.extra { (arrival.attempt.map(number).unwrap_or_default()) }
            td.cut.fill.mono title=(arrival.path) { (arrival.method) " " (arrival.path) }
            td.minor { @match arrival.signature_valid {
                Some(true) => { span.status.completed { "valid" } }
                Some(false) => { span.status.failed { "wrong" } }
                None => { span.muted { "none" } }
            } }
            td { @match arrival.answered { Some(status) => { span class={ "status " (if status < 400 { "completed" } else { "failed" }) } { (status) } } None => { span.status.expired { "never" } } } }
        }
    }
}

/// A row below the first, so that what is opened has the whole width.
fn content_of(visitor: &Visitor, Call { seq, arrival, duplicate_of }: &Call) -> Markup {
    html! {
        tr.more { td.wrap colspan="8" { details id={ "call-" (seq) } {
            summary {
                (text::counted(arrival.body.len() as u64, "byte", "bytes")) " " span.mono.muted { (text::cut(&arrival.body, BODY_CHARS_TOLD)) }
                @if let Some(first) = duplicate_of { " " span.status.expired { "repeats #" (first) } }
            }
            div.stack {
                div.mono.muted { @for (name, value) in &arrival.headers { div { (name) ": " (value) } } }
                pre tabindex="0" { (text::cut(&arrival.body, BODY_BYTES_SHOWN)) }
                form.pick method="post" action=(visitor.link("/inbox/again")) {
                    input type="hidden" name="seq" value=(seq);
                    input type="url" name="url" required placeholder="http://localhost:3000/hook" aria-label={ "Send call " (seq) " again to" };
                    button { "Send again" }
                }
            }
        } } }
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
                label { "Path" input type="text" name="path" placeholder="/hello" autocomplete="off"; }
                label { "Status" input type="number" name="status" value="503" min="200" max="599"; }
                label { "Times" input type="number" name="times" value="2" min="1"; }
                label { "Delay" input type="text" name="delay" value="0s"; }
                label { "Retry-After" input type="number" name="retry_after" min="0" placeholder="seconds"; }
            }
            p.hint { "Without a path it holds for every path, and without a number for every call." }
            label { "Body" input type="text" name="body" autocomplete="off"; }
            label.inline { input type="checkbox" name="hang"; "never answer" }
            div.actions { button name="reset" value="1" { "Answer 200 again" } button.main { "Set the answer" } }
        }
    }
}

/// What the receiver answers from now on, by path.
fn programmed(visitor: &Visitor, answers: &[Answer]) -> Markup {
    html! {
        @if !answers.is_empty() {
            div.table tabindex="0" role="region" aria-label="Programmed answers" { table {
                thead { tr { th { "Path" } th { "Answers" } th.num { "Calls" } th.num { "After" } th { span.unseen { "Actions" } } } }
                tbody { @for answer in answers {
                    tr {
                        td.cut.mono { @match &answer.path { Some(path) => { (path) } None => { span.muted { "every path" } } } }
                        td { (worded(answer)) }
                        td.num { @match answer.times { Some(times) => { "the next " (number(times)) } None => { "every" } } }
                        td.num { @if answer.delay.is_zero() { span.muted { "–" } } @else { (text::micros(u64::try_from(answer.delay.as_micros()).unwrap_or(u64::MAX))) } }
                        td { form.plain method="post" action=(visitor.link("/inbox/answers")) {
                            input type="hidden" name="path" value=(answer.path.as_deref().unwrap_or_default());
                            button.quiet name="remove" value="1" aria-label={ "Remove the answer for " (answer.path.as_deref().unwrap_or("every path")) } { "Remove" }
                        } }
                    }
                } }
            } }
        }
    }
}

fn worded(answer: &Answer) -> Markup {
    html! { @match &answer.reply {
        None => { span.status.expired { "never" } }
        Some(reply) => {
            span class={ "status " (if reply.status.as_u16() < 400 { "completed" } else { "failed" }) } { (reply.status.as_u16()) }
            @if let Some(seconds) = reply.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()) { span.muted { " Retry-After " (seconds) } }
        }
    } }
}

/// `POST /console/inbox/answers`: takes the place of the answer that was programmed for the same path, or removes it.
pub(crate) async fn program(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    let tools = tools(&visitor)?;
    if form.get("remove").is_some() {
        tools.answers.remove(form.get("path"));
        return Ok(Redirect::to(&visitor.link("/inbox?done=remove")).into_response());
    }
    if form.get("reset").is_some() {
        tools.answers.replace(Vec::new());
    } else if !tools.answers.set(answer_of(&form)?) {
        return Err(Invalid::new("answers", format!("must not be more than {ANSWERS_MAX}")).into());
    }
    Ok(Redirect::to(&visitor.link("/inbox?done=answers")).into_response())
}

/// `POST /console/inbox/again`: a timer that is due now carries the body of a call to another address, as a call of its own.
pub(crate) async fn again(visitor: Visitor, Form(form): Form) -> Result<Response, Problem> {
    let tools = tools(&visitor)?;
    let seq = form.get("seq").and_then(|seq| seq.parse().ok());
    let call = seq.and_then(|seq| tools.inbox.get(seq)).ok_or(Problem::NoSuchPage)?;
    let callback = serde_json::json!({"type": "http", "url": form.get("url").map(str::trim).unwrap_or_default()});
    let mut callback = Callback::from_json(&callback.to_string())?;
    let body = Some(call.arrival.body.as_str()).filter(|body| !body.is_empty());
    callback.payload = body.map(|body| JsonText::parse("the body", body, limits::PAYLOAD_BYTES_MAX)).transpose()?;
    let request = NewTimerRequest {
        earliest_allowed: EarliestAllowed::Any,
        ..NewTimerRequest::new(RequestedTime::After(Span::ZERO), Target::Callback(callback))
    };
    let outcome = visitor.commands.create(request).await?;
    Ok(Redirect::to(&visitor.link(&format!("/timers/{}?done=create", outcome.timer().id()))).into_response())
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
            body: r#"{"a":"</pre><script>alert(1)</script>"}"#.to_owned(),
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
        assert!(page.text.contains("<details id=\"call-1\">"), "a live page knows it again: {}", page.text);

        assert_eq!(rig.post("/console/inbox/answers", "path=/hello&status=503&times=2&retry_after=7&delay=1s").await.status, 303);
        let answer = tools.answers.take("/hello").unwrap();
        assert_eq!((answer.delay, answer.times), (Duration::from_secs(1), Some(1)));
        let reply = answer.reply.unwrap();
        assert_eq!((reply.status.as_u16(), &reply.headers["retry-after"]), (503, &HeaderValue::from_static("7")));
        assert_eq!(rig.post("/console/inbox/answers", "status=99").await.status, 400);
        assert_eq!(rig.post("/console/inbox/answers", "path=/other&status=404&times=").await.status, 303);
        let page = rig.get("/console/inbox").await;
        assert!(
            page.text.contains("the next 1") && page.text.contains("Retry-After 7") && page.text.contains(">/other<"),
            "{}",
            page.text
        );
        assert_eq!(rig.post("/console/inbox/answers", "path=/other&remove=1").await.status, 303);
        assert!(tools.answers.take("/other").is_none() && tools.answers.take("/hello").is_some(), "only that one was removed");
        assert_eq!(rig.post("/console/inbox/answers", "reset=1").await.status, 303);
        assert!(tools.answers.take("/hello").is_none());

        let again = rig.post("/console/inbox/again", "seq=1&url=http%3A%2F%2Flocalhost%3A3000%2Fhook").await;
        let page = rig.get(again.headers["location"].to_str().unwrap()).await;
        assert!(page.text.contains("POST http://localhost:3000/hook") && page.text.contains("alert(1)"), "{}", page.text);
        assert_eq!(rig.post("/console/inbox/again", "seq=1&url=x").await.status, 400);
        assert_eq!(rig.post("/console/inbox/again", "seq=7&url=http%3A%2F%2Fa").await.status, 404);

        let moved = rig.post("/console/inbox/clock", "to=next").await;
        let page = rig.get(moved.headers["location"].to_str().unwrap()).await;
        assert!(page.text.contains("1 call was made, 2 pending"), "{}", page.text);
        assert_eq!(rig.post("/console/inbox/clock", "to=1h").await.status, 400);
        assert_eq!(rig.post("/console/inbox/clear", "").await.status, 303);
        assert!(tools.inbox.latest(None, 1).0.is_empty());
        for _ in 0..SHOWN + 5 {
            tools.inbox.record(arrival());
        }
        let older = rig.get("/console/inbox").await.link("Older");
        let page = rig.get(&older).await;
        assert_eq!((older.as_str(), page.text.matches("POST /hello").count()), ("/console/inbox?before=7", 5));
        assert!(page.text.contains(">Latest<") && !page.text.contains(">Older<"));

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
