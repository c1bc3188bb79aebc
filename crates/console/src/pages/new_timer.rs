//! `/console/timers/new`: a form for a timer. Links fill it in: `?from=ID` with a copy of one, `?url=…&delay=…` with its fields.

use axum::response::{IntoResponse, Redirect, Response};
use commands::{CommandError, NewTimerRequest};
use domain::{Invalid, Timer, Timestamp};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};

use crate::{
    config::Payloads,
    fields::{Fields, Form},
    form_preview,
    frame::{self, Section},
    named_timer,
    problem::{Problem, sentence, status_of},
    timer_draft::Draft,
    timer_form::TimerForm,
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor, fields: Fields) -> Result<Markup, Problem> {
    visitor.check_may_write()?;
    let tab = fields.get("as").map(str::to_owned);
    let Some(id) = fields.get("from") else {
        return Ok(page(&visitor, &Draft::of_form(TimerForm::of(fields), tab.as_deref(), true), None, None));
    };
    let timer = named_timer::read(&visitor, id).await?;
    let draft = Draft::of_form(TimerForm::of_copy(&timer, visitor.payloads()), tab.as_deref(), true);
    Ok(page(&visitor, &draft, None, not_copied(&visitor, &timer).as_ref()))
}

/// Names what a copy is without, if it is without anything.
fn not_copied(visitor: &Visitor, timer: &Timer) -> Option<Markup> {
    let names = TimerForm::not_copied(timer, visitor.payloads());
    (!names.is_empty()).then(|| {
        html! {
            p.notice.warn { span { "Not copied: " strong { (names.join(", ")) } ". "
                @if visitor.payloads() == Payloads::Off { "CONSOLE_PAYLOADS is off, and the form does not have every field." }
                @else { "The form has no fields for them; as JSON they can be given." }
            } }
        }
    })
}

pub(crate) async fn create(visitor: Visitor, headers: HeaderMap, Form(fields): Form) -> Result<Response, Problem> {
    visitor.check_may_write()?;
    if headers.get("x-fragment").is_some_and(|part| part == "preview") {
        let form = Draft::of(fields).as_form(&TimerForm::default());
        return Ok(form_preview::fragment(&visitor, &form).into_response());
    }
    let is_check = fields.get("check").is_some();
    let tab = fields.get("as").map(str::to_owned);
    let draft = Draft::of(fields);
    let refused = |invalid: Invalid| (StatusCode::BAD_REQUEST, page(&visitor, &draft, Some(&invalid), None)).into_response();
    if let Some(tab) = tab {
        return Ok(match draft.turned(&tab, &TimerForm::default(), true) {
            Ok(draft) => page(&visitor, &draft, None, None).into_response(),
            Err(invalid) => refused(invalid),
        });
    }
    let request = match draft.to_request(&visitor.shared.config.reader) {
        Ok(request) => request,
        Err(invalid) => return Ok(refused(invalid)),
    };
    if is_check {
        return Ok(match visitor.commands.preview(request) {
            Ok(due) => page(&visitor, &draft, None, Some(&valid(&visitor, &draft, due))).into_response(),
            Err(CommandError::Invalid(invalid)) => refused(invalid),
            Err(error) => return Err(error.into()),
        });
    }
    Ok(match register(&visitor, request).await {
        Ok(link) => Redirect::to(&link).into_response(),
        Err(CommandError::Invalid(invalid)) => refused(invalid),
        Err(error @ (CommandError::Conflict(_) | CommandError::InDelivery(_))) => {
            let notice = html! { p.notice.bad role="alert" { (sentence(&error.to_string())) } };
            (status_of(&error), page(&visitor, &draft, None, Some(&notice))).into_response()
        }
        Err(error) => return Err(error.into()),
    })
}

/// Where the page of the new timer is.
async fn register(visitor: &Visitor, request: NewTimerRequest) -> Result<String, CommandError> {
    let outcome = visitor.commands.create(request).await?;
    Ok(visitor.link(&format!("/timers/{}?done=create", outcome.timer().id())))
}

/// What the answer to "Validate" says, where nothing is wrong.
pub(crate) fn valid(visitor: &Visitor, draft: &Draft, due: Timestamp) -> Markup {
    let form = draft.as_form(&TimerForm::default());
    html! { p.notice role="status" { span { strong { "Everything is valid." } " " (form_preview::told(visitor, &form, due)) } } }
}

fn page(visitor: &Visitor, draft: &Draft, refused: Option<&Invalid>, notice: Option<&Markup>) -> Markup {
    let body = html! {
        div.title { h1 { "New timer" } }
        @if let Some(notice) = notice { (notice) }
        @if let Some(invalid) = refused { p.notice.bad role="alert" { (sentence(&invalid.to_string())) } }
        section.card.form { div.body {
            form.stack.sections method="post" action=(visitor.link("/timers/new")) data-preview=(visitor.link("/timers/new")) {
                (draft.render(visitor, refused, true))
                div.actions { button name="check" value="1" { "Validate" } button.main { "Create timer" } }
            }
        } }
    };
    frame::page(visitor, Some(Section::Timers), "New timer", body)
}

#[cfg(test)]
mod tests {
    use commands::{NewTimerRequest, Target};
    use domain::{Callback, JsonText, Options, RequestedTime, Rights, Span};

    use crate::{
        config::Payloads,
        rig::{Rig, request},
    };

    const FORM: &str = "when=delay&delay=1h&kind=http&url=https%3A%2F%2Fapi.example%2Fhook&payload=%7B%22n%22%3A1e400%7D&namespace=a&key=order-1";

    #[tokio::test]
    async fn a_timer_is_checked_and_created() {
        let rig = Rig::new();
        let checked = rig.post("/console/timers/new", &format!("{FORM}&check=1")).await;
        assert!(checked.status == 200 && checked.text.contains("Everything is valid."), "{}", checked.text);
        assert!(rig.get("/console/timers").await.text.contains("No timers yet"));
        let created = rig.post("/console/timers/new", FORM).await;
        assert_eq!(created.status, 303, "{}", created.text);
        let page = rig.get(created.headers["location"].to_str().unwrap()).await;
        assert!(page.text.contains("The timer was created.") && page.text.contains("1e400"), "{}", page.text);

        let other = rig.post("/console/timers/new", &FORM.replace("hook", "other")).await;
        assert!(
            other.status == 409
                && other.text.contains("exists and has other content")
                && other.text.contains("api.example/other")
        );
        let wrong = rig.post("/console/timers/new", &FORM.replace("1h", "soon")).await;
        assert_eq!(wrong.text.matches("aria-invalid").count(), 1);
        assert!(wrong.status == 400 && wrong.text.contains("id=\"error-delay\"") && wrong.text.contains("api.example/hook"));
    }

    #[tokio::test]
    async fn every_answer_says_when_it_fires_and_when_it_is_tried_again() {
        let rig = Rig::new();
        let berlin = "when=at&date=2030-01-31T11:30&zone=Europe/Berlin&kind=http&url=https%3A%2F%2Fa.example&max_retries=3";
        let told = "Fires <strong>Thu 31 Jan 2030 10:30:00 UTC</strong> = Thu 11:30 Europe/Berlin, ";
        let checked = rig.post("/console/timers/new", &format!("{berlin}&check=1")).await;
        let refused = rig.post("/console/timers/new", &format!("{berlin}&payload=x")).await;
        let as_json = rig.post("/console/timers/new", &format!("{berlin}&as=json")).await;
        assert_eq!((checked.status.as_u16(), refused.status.as_u16(), as_json.status.as_u16()), (200, 400, 200));
        assert!(as_json.text.contains("&quot;execute_at&quot;: &quot;2030-01-31T10:30:00Z&quot;"), "{}", as_json.text);
        for page in [&checked, &refused] {
            assert!(page.text.contains(told) && page.text.contains("Up to 4 attempts"), "{}", page.text);
            assert!(
                page.text.contains("value=\"2030-01-31T11:30\"") && page.text.contains("class=\"mark next\""),
                "{}",
                page.text
            );
        }
        let request = request("POST", "/console/timers/new").header("cookie", &rig.cookie).header("x-fragment", "preview");
        let request = request.header("sec-fetch-site", "same-origin").header("content-type", "application/x-www-form-urlencoded");
        let part = rig.send(request.body(berlin.into()).unwrap()).await;
        assert!(
            !part.text.contains("<html") && part.text.contains("id=\"form-fires\"") && part.text.contains(told),
            "{}",
            part.text
        );
        let tokyo = rig.get_as(&format!("{}; timer-zone=Asia/Tokyo", rig.cookie), "/console/timers/new?delay=5m").await;
        assert!(tokyo.text.contains("= Tue 09:05 Asia/Tokyo") && tokyo.text.contains("value=\"Asia/Tokyo\""), "{}", tokyo.text);
    }

    #[tokio::test]
    async fn links_fill_the_form_in() {
        let rig = Rig::new();
        let filled = rig.get("/console/timers/new?url=https://a.example/x&delay=5s").await;
        assert!(filled.text.contains("value=\"https://a.example/x\"") && filled.text.contains("value=\"5s\""), "{}", filled.text);
        let id = rig.timer_with_payload("k", r#"{"tulip":1}"#).await;
        let copy = rig.get(&format!("/console/timers/new?from={id}")).await;
        assert!(copy.text.contains("tulip") && !copy.text.contains("value=\"k\""), "{}", copy.text);
    }

    #[tokio::test]
    async fn a_copy_names_what_it_is_without() {
        for (payloads, named) in [
            (Payloads::Shown, "on_success, on_failure, postpone_max"),
            (Payloads::Off, "payload, headers, metadata, on_success, on_failure, postpone_max"),
        ] {
            let rig = Rig::with_payloads(payloads);
            let call = |json: &str| Callback::from_json(json).unwrap();
            let follow_up = || Some(Box::new(call(r#"{"type":"http","url":"https://a.example/then"}"#)));
            let callback = call(r#"{"type":"http","url":"https://a.example/x","headers":{"X-A":"1"},"payload":{"tulip":1}}"#);
            let options = Options {
                on_success: follow_up(),
                on_failure: follow_up(),
                postpone_max: Some(Span::from_secs(90)),
                ..Options::default()
            };
            let request = NewTimerRequest {
                options,
                metadata: Some(JsonText::parse("metadata", r#"{"n":1}"#, 100).unwrap()),
                ..NewTimerRequest::new(RequestedTime::After(Span::from_secs(60)), Target::Callback(callback))
            };
            let id = rig.commands.create(request).await.unwrap().timer().id();
            let copy = rig.get(&format!("/console/timers/new?from={id}")).await;
            assert!(copy.text.contains(&format!("Not copied: <strong>{named}</strong>.")), "{}", copy.text);
            let plain = rig.timer("plain", "a").await;
            assert!(!rig.get(&format!("/console/timers/new?from={plain}")).await.text.contains("Not copied"));
        }
    }

    #[tokio::test]
    async fn a_key_creates_in_its_namespaces_only() {
        let rig = Rig::new();
        let (_, writer) = rig.holder(&["b"], Rights::Write).await;
        assert_eq!(rig.post_as(&writer, "/console/timers/new", FORM).await.status, 403);
        let (_, reader) = rig.holder(&["a", "b"], Rights::Read).await;
        assert_eq!(rig.get_as(&reader, "/console/timers/new").await.status, 403);
        assert_eq!(rig.post_as(&reader, "/console/timers/new", FORM).await.status, 403);
    }
}
