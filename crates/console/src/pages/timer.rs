//! `/console/timers/{id}`: one timer, with all that is known of it.

use axum::extract::Path;
use domain::{Attempt, Event, Expiry, RequestedTime, Status, Timer};
use maud::{Markup, html};

use crate::{
    actions::Action,
    call_kinds,
    config::Payloads,
    fields::Fields,
    filter_words::word,
    frame::{self, Section},
    named_timer::{name_of, read},
    pages::signature,
    problem::Problem,
    region::Region,
    retry_curve,
    text::{self, distance, exact_time, status},
    timer_attempts::{self, next_attempt},
    timer_life, timer_rows,
    visitor::Visitor,
};

/// Longer texts are folded.
const SHOWN_BYTES_MAX: usize = 4 * 1024;

pub(crate) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Result<Markup, Problem> {
    let timer = read(&visitor, &id).await?;
    let notice = fields.get("done").and_then(Action::parse).map(Action::done);
    let notice = notice.or_else(|| (fields.get("done") == Some("create")).then_some("The timer was created."));
    let notice = notice.or_else(|| (fields.get("done") == Some("edit")).then_some("The timer was changed."));
    let name = name_of(&timer);
    let attempts = visitor.commands.attempts(timer.id()).await?;
    let regions = regions_of(&visitor, &timer, &attempts);
    let body = html! {
        @if let Some(notice) = notice { p.notice role="status" { (notice) } }
        (regions[0])
        div.grid {
            @for region in &regions[1..] { (region) }
            @if !timer.definition.callback.is_event() {
                details.card.span-12.folded { summary { h2 { "Verify a signature" } } div.body { (signature::form(&visitor, &timer, &attempts, &Fields::default())) } }
            }
        }
    };
    Ok(frame::page(&visitor, Some(Section::Timers), &name, body))
}

/// What changes while the page is looked at.
pub(crate) async fn regions(visitor: &Visitor, id: &str) -> Result<Vec<Region>, Problem> {
    let timer = read(visitor, id).await?;
    let attempts = visitor.commands.attempts(timer.id()).await?;
    Ok(regions_of(visitor, &timer, &attempts))
}

fn regions_of(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Vec<Region> {
    vec![
        Region::new("timer-head", "title", head(visitor, timer, attempts)),
        Region::new("timer-life", "card span-12", timer_life::life(visitor, timer, attempts)),
        Region::new("timer-facts", "card span-5", facts(visitor, timer)),
        Region::new("timer-content", "card span-7", content(visitor, timer)),
        Region::new("timer-attempts", "card span-12", timer_attempts::card(visitor, timer, attempts)),
    ]
}

fn head(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Markup {
    let id = timer.id();
    let page = |rest: &str| visitor.link(&format!("/timers/{id}{rest}"));
    html! {
        h1.mono { (name_of(timer)) }
        (status(timer.status))
        @if let Some(next) = next_attempt(timer, attempts) {
            span.muted { "attempt " (timer.attempt + 1) " " (distance(visitor, next)) }
        } @else if timer.status == Status::Pending && timer.attempt > 0 {
            span.muted { "waits for attempt " (timer.attempt + 1) }
        } @else if matches!(timer.status, Status::Pending | Status::Paused) {
            span.muted { "due " (distance(visitor, timer.execute_at)) }
        } @else if let Some(executed_at) = timer.executed_at {
            span.muted { (timer.status.as_str()) " " (distance(visitor, executed_at)) }
        }
        @if visitor.may_write() {
            span.actions {
                a.button href=(visitor.link_to("/timers/new", &Fields::from([("from", id.to_string().as_str())]))) { "Duplicate" }
                @if timer.status.after(Event::Update).is_some() { a.button href=(page("/edit")) data-key="e" { "Edit" } }
                @for action in Action::ALL.into_iter().filter(|action| action.is_possible(timer.status)) {
                    a.button.danger[action.is_final()].main[action == Action::Fire] href=(page(&format!("/{}", action.name())))
                        data-dialog data-key=[action.key()] { (action.title()) }
                }
            }
        } @else {
            span.actions.muted { "This key may only read." }
        }
    }
}

fn facts(visitor: &Visitor, timer: &Timer) -> Markup {
    let definition = &timer.definition;
    let list = |name: &str, value: &str| visitor.link_to_timers(&word(name, value));
    let address = definition.callback.address().map(|address| address.to_string());
    html! {
        header { h2 { "Facts" } span.aside { (copies(visitor, timer)) } }
        div.body { dl.facts {
            dt { "Id" } dd.mono { (timer.id()) }
            @if let Some(key) = &definition.key { dt { "Key" } dd.mono { (key) } }
            dt { "Namespace" } dd { a href=(list("ns:", definition.namespace.as_str())) { (definition.namespace) } }
            dt { "Due" } dd { (exact_time(visitor, timer.execute_at)) }
            dt { "Asked for" } dd { @match definition.asked { RequestedTime::At(at) => { (exact_time(visitor, at)) } RequestedTime::After(span) => { (text::span(span)) " after it was registered" } } }
            @if let Some(at) = timer.executed_at { dt { "Executed" } dd { (exact_time(visitor, at)) } }
            (call_kinds::facts(&definition.callback))
            @if let Some(address) = &address { dt { "Destination" } dd { a href=(list("dest:", address)) { (address) } } }
            dt { "Attempts" } dd { (timer_rows::attempts(timer.attempt, Some(timer_rows::attempts_max(timer)))) }
            dt { "Retries" } dd { (definition.retries().map_or_else(|| "none".to_owned(), |policy| retry_curve::summary(&policy))) }
            dt { "Delivery" } dd { (definition.delivery.as_str().replace('_', " ")) }
            @if let Some(group) = &definition.group { dt { "Group" } dd { a href=(list("group:", group.as_str())) { (group) } } }
            @if let Some(id) = &definition.correlation_id { dt { "Correlation id" } dd.mono { a href=(list("corr:", id.as_str())) { (id) } } }
            @if let Some(expiry) = definition.options.expiry {
                dt { "Expires" } dd { (exact_time(visitor, expiry.instant(timer.execute_at))) @if let Expiry::After(span) = expiry { span.muted { " (" (text::span(span)) " after it is due)" } } }
            }
            @if let Some(span) = definition.options.postpone_max { dt { "Postponed at most" } dd { (text::span(span)) } }
            @if let Some(pause) = &timer.pause { dt { "Paused" } dd { (exact_time(visitor, pause.at)) @if let Some(note) = &pause.note { ": " (note) } } }
            @if let Some(error) = &timer.last_error { dt { "Last error" } dd.bad { (error) } }
            dt { "webhook-id" } dd.mono { (timer.webhook_id()) }
            dt { "Created" } dd { (exact_time(visitor, timer.created_at)) }
            dt { "Changed" } dd { (exact_time(visitor, timer.updated_at)) }
            dt { "Revision" } dd { (timer.revision) }
        } }
    }
}

/// What can be pasted elsewhere. The script shows the buttons.
fn copies(visitor: &Visitor, timer: &Timer) -> Markup {
    let id = timer.id();
    let (api, origin) = (visitor.api(), &visitor.origin);
    html! {
        @for (name, text) in [
            ("id", id.to_string()),
            ("link", format!("{origin}{}", visitor.link(&format!("/timers/{id}")))),
            ("curl", format!("curl -H \"X-API-Key: $API_KEY\" {api}/timers/{id}")),
            ("command", format!("timer get {id}")),
        ] {
            button.quiet type="button" hidden data-copy=(text) { "Copy " (name) }
        }
    }
}

fn content(visitor: &Visitor, timer: &Timer) -> Markup {
    let definition = &timer.definition;
    let payloads = visitor.payloads();
    let headers: String = definition.callback.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let texts = [
        ("Payload", definition.callback.payload.as_ref().map(|payload| payload.as_str().to_owned())),
        ("Metadata", definition.metadata.as_ref().map(|metadata| metadata.as_str().to_owned())),
        ("Headers", (!headers.is_empty()).then(|| headers.trim_end().to_owned())),
        ("On success", definition.options.on_success.as_ref().map(|callback| callback.to_json())),
        ("On failure", definition.options.on_failure.as_ref().map(|callback| callback.to_json())),
    ];
    let is_empty = texts.iter().all(|(_, text)| text.is_none());
    html! {
        header { h2 { "Content" } @if payloads == Payloads::Off { span.aside { "not shown: CONSOLE_PAYLOADS is off" } } }
        div.body.stack {
            @if is_empty { p.muted { "No payload, no metadata, no headers." } }
            @for (name, text) in texts {
                @if let Some(text) = text { (exact(name, &text, payloads)) }
            }
        }
    }
}

/// A text as it is: nothing of it is parsed or changed.
fn exact(name: &str, text: &str, payloads: Payloads) -> Markup {
    let is_open = payloads == Payloads::Shown && text.len() <= SHOWN_BYTES_MAX;
    let bytes = text::counted(text.len() as u64, "byte", "bytes");
    let id = format!("content-{}", name.to_lowercase().replace(' ', "-"));
    html! {
        @if payloads == Payloads::Off {
            p { strong { (name) } " " span.muted { (bytes) } }
        } @else {
            details id=(id) open[is_open] {
                summary { strong { (name) } " " span.muted { (bytes) } }
                div.copied { button.quiet type="button" hidden data-copy=(text) { "Copy" } pre tabindex="0" dir="ltr" { (text) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{config::Payloads, rig::Rig};

    const HOSTILE: &str = r#"{"a":"</script><script>alert(1)</script>","n":12345678901234567890,"r":"\u202e\u2066"}"#;

    #[tokio::test]
    async fn a_hostile_payload_is_text_and_nothing_else() {
        let rig = Rig::with_payloads(Payloads::Shown);
        let id = rig.timer_with_payload("<b>bold</b>\"'", HOSTILE).await;
        let page = rig.get(&format!("/console/timers/{id}")).await;
        assert_eq!(page.status, 200);
        assert!(!page.text.contains("<script>alert") && !page.text.contains("<b>bold"), "{}", page.text);
        assert!(page.text.contains("&lt;/script&gt;&lt;script&gt;alert(1)") && page.text.contains("12345678901234567890"));
        let list = rig.get("/console/timers").await;
        assert!(!list.text.contains("<b>bold") && list.text.contains("&lt;b&gt;bold&lt;/b&gt;"));
    }

    #[tokio::test]
    async fn payloads_are_shown_folded_or_not_sent() {
        for (payloads, is_sent, is_open) in
            [(Payloads::Shown, true, true), (Payloads::Hidden, true, false), (Payloads::Off, false, false)]
        {
            let rig = Rig::with_payloads(payloads);
            let id = rig.timer_with_payload("k", r#"{"secret":"tulip"}"#).await;
            let page = rig.get(&format!("/console/timers/{id}")).await;
            assert_eq!(page.text.contains("tulip"), is_sent, "{payloads:?}");
            assert_eq!(page.text.contains("<details id=\"content-payload\" open>"), is_open, "{payloads:?}");
        }
    }

    #[tokio::test]
    async fn a_timer_that_is_not_there_is_said_so() {
        let rig = Rig::new();
        for path in ["/console/timers/01890a5d-ac96-774b-bcce-b302099a8057", "/console/timers/x", "/console/nowhere"] {
            let page = rig.get(path).await;
            assert!(page.status == 404 && page.text.contains("Not found"), "{path} {}", page.text);
        }
    }
}
