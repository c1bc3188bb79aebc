//! `/console/timers/{id}/edit`: changes a timer, if it is still the one that was looked at.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use commands::{CommandError, Field, Patch};
use domain::{Invalid, Timer};
use http::StatusCode;
use maud::{Markup, html};

use crate::{
    config::Payloads,
    fields::{Fields, Form},
    frame::{self, Section},
    named_timer,
    pages::new_timer,
    problem::{Problem, sentence},
    text,
    timer_draft::Draft,
    timer_form::TimerForm,
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Result<Markup, Problem> {
    visitor.check_may_write()?;
    let timer = named_timer::read(&visitor, &id).await?;
    let draft = Draft::of_form(TimerForm::of_timer(&timer, visitor.payloads()), fields.get("as"), false);
    Ok(page(&visitor, &timer, &draft, None, None))
}

pub(crate) async fn update(visitor: Visitor, Path(id): Path<String>, Form(fields): Form) -> Result<Response, Problem> {
    visitor.check_may_write()?;
    let before = named_timer::read(&visitor, &id).await?;
    let revision = fields.get("revision").and_then(|revision| revision.parse().ok());
    let expected: u32 = revision.ok_or_else(|| Invalid::new("revision", "must be that of the timer that you looked at"))?;
    let tab = fields.get("as").map(str::to_owned);
    let is_check = fields.get("check").is_some();
    let draft = Draft::of(fields);
    // Every form that is sent back keeps the revision that was looked at: with the current one, the next save would overwrite what
    // another client has changed meanwhile.
    let looked_at = Timer { revision: expected, ..before.clone() };
    let refused =
        |invalid: &Invalid| (StatusCode::BAD_REQUEST, page(&visitor, &looked_at, &draft, Some(invalid), None)).into_response();
    if let Some(tab) = tab {
        return Ok(match draft.turned(&tab, &TimerForm::of_timer(&before, visitor.payloads()), false) {
            Ok(draft) => page(&visitor, &looked_at, &draft, None, None).into_response(),
            Err(invalid) => refused(&invalid),
        });
    }
    let patch = match draft.to_patch(&visitor.shared.config.reader, &before) {
        Ok(patch) => keeping(patch, &before, visitor.payloads()),
        Err(invalid) => return Ok(refused(&invalid)),
    };
    if is_check {
        return Ok(match visitor.commands.preview_update(&before, &patch) {
            Ok(due) => {
                let notice = new_timer::valid(&visitor, &draft, due);
                page(&visitor, &looked_at, &draft, None, Some(&notice)).into_response()
            }
            Err(CommandError::Invalid(invalid)) => refused(&invalid),
            Err(error) => return Err(error.into()),
        });
    }
    match visitor.commands.update(before.id(), &patch, Some(expected)).await {
        Ok(timer) => Ok(Redirect::to(&visitor.link(&format!("/timers/{}?done=edit", timer.id()))).into_response()),
        Err(CommandError::Invalid(invalid)) => Ok(refused(&invalid)),
        Err(CommandError::StaleRevision { .. }) => {
            let now = named_timer::read(&visitor, &id).await?;
            let conflict = conflict(&visitor, &now, &draft, expected);
            Ok((StatusCode::PRECONDITION_FAILED, page(&visitor, &now, &draft, None, Some(&conflict))).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// What a browser was not sent, it cannot have changed.
fn keeping(mut patch: Patch, timer: &Timer, payloads: Payloads) -> Patch {
    if payloads == Payloads::Off {
        let stored = &timer.definition.callback;
        if let Some(callback) = &mut patch.callback {
            callback.payload = callback.payload.take().or_else(|| stored.payload.clone());
            if callback.headers.iter().next().is_none() {
                callback.headers = stored.headers.clone();
            }
        }
        if matches!(patch.metadata, Field::Clear) {
            patch.metadata = Field::Absent;
        }
    }
    patch
}

/// What is stored now beside what was written, where they differ.
fn conflict(visitor: &Visitor, now: &Timer, draft: &Draft, expected: u32) -> Markup {
    let stored = TimerForm::of_timer(now, visitor.payloads());
    let written = draft.as_form(&stored);
    html! {
        section.card role="alert" aria-label="Conflict" {
            div.body.stack {
                p.notice.warn { strong { "The timer was changed meanwhile, and nothing of yours was saved." }
                    " You looked at revision " (expected) ", and it has revision " (now.revision) " since " (text::distance(visitor, now.updated_at)) "."
                }
                div.table tabindex="0" role="region" aria-label="Both versions" { table {
                    thead { tr { th { "Field" } th { "Stored now" } th { "Yours" } } }
                    tbody { @for (name, theirs, yours) in stored.differences(&written) {
                        tr { td { (name.replace('_', " ")) } td.wrap.mono { (text::cut(&theirs, 300)) } td.wrap.mono { (text::cut(&yours, 300)) } }
                    } }
                } }
                p { "The form below has what you wrote; saving it now replaces what is stored. "
                    a href=(visitor.link(&format!("/timers/{}/edit", now.id()))) { "Begin again with what is stored" } "."
                }
            }
        }
    }
}

fn page(visitor: &Visitor, timer: &Timer, draft: &Draft, refused: Option<&Invalid>, conflict: Option<&Markup>) -> Markup {
    let id = timer.id();
    let back = visitor.link(&format!("/timers/{id}"));
    let body = html! {
        div.title { h1 { "Edit " span.mono { (named_timer::name_of(timer)) } } (text::status(timer.status)) span.muted { "in " (timer.definition.namespace) } }
        @if let Some(conflict) = conflict { (conflict) }
        @if visitor.payloads() == Payloads::Off { p.notice { "Payload, metadata and headers are not shown: CONSOLE_PAYLOADS is off. What you leave empty stays as it is." } }
        @if let Some(invalid) = refused { p.notice.bad role="alert" { (sentence(&invalid.to_string())) } }
        section.card.form { div.body {
            form.stack.sections method="post" action=(visitor.link(&format!("/timers/{id}/edit"))) data-preview=(visitor.link("/timers/new")) {
                input type="hidden" name="revision" value=(timer.revision);
                (draft.render(visitor, refused, false))
                div.actions { a.button href=(back) { "Back" } button name="check" value="1" { "Validate" } button.main { "Save" } }
            }
        } }
    };
    frame::page(visitor, Some(Section::Timers), "Edit timer", body)
}

#[cfg(test)]
mod tests {
    use domain::{Span, Status};

    use crate::rig::Rig;

    /// What the form of a timer sends when nothing is changed in it, apart from this.
    const FORM: &str = "when=delay&delay=2h&kind=http&url=https%3A%2F%2Fapi.example%2Fnew&metadata=%7B%22a%22%3A1%7D";

    #[tokio::test]
    async fn a_change_is_saved() {
        let rig = Rig::new();
        let id = rig.timer_with_payload("k", r#"{"n":1}"#).await;
        let path = format!("/console/timers/{id}/edit");
        let form = rig.get(&path).await;
        assert!(
            form.text.contains("name=\"revision\" value=\"1\"") && form.text.contains("https://api.shop.example/hook"),
            "{}",
            form.text
        );
        let checked = rig.post(&path, &format!("{FORM}&revision=1&check=1")).await;
        assert!(checked.status == 200 && checked.text.contains("Everything is valid."), "{}", checked.text);
        assert_eq!(rig.commands.get(id).await.unwrap().revision, 1, "it was looked at, and not changed");
        let saved = rig.post(&path, &format!("{FORM}&revision=1")).await;
        assert_eq!(saved.status, 303, "{}", saved.text);
        let timer = rig.commands.get(id).await.unwrap();
        assert_eq!(timer.execute_at.since(rig.commands.clock.now()), Span::from_secs(7200));
        assert_eq!((timer.definition.callback.payload, timer.revision), (None, 2));
        let wrong = rig.post(&path, &format!("{}&revision=2", FORM.replace("2h", "x"))).await;
        assert!(wrong.status == 400 && wrong.text.contains("id=\"error-delay\""));
    }

    #[tokio::test]
    async fn a_mistake_in_the_form_does_not_forget_which_revision_was_looked_at() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let path = format!("/console/timers/{id}/edit");
        rig.commands.pause(id, None, None).await.unwrap();
        let refused = rig.post(&path, &format!("{}&revision=1", FORM.replace("2h", "x"))).await;
        assert!(refused.status == 400 && refused.text.contains("name=\"revision\" value=\"1\""), "{}", refused.text);
        let turned = rig.post(&path, &format!("{FORM}&revision=1&as=json")).await;
        assert!(turned.status == 200 && turned.text.contains("name=\"revision\" value=\"1\""), "{}", turned.text);
        assert_eq!(rig.post(&path, &format!("{FORM}&revision=1")).await.status, 412);
        for missing in [FORM.to_owned(), format!("{FORM}&revision="), format!("{FORM}&revision=latest")] {
            assert_eq!(rig.post(&path, &missing).await.status, 400, "{missing}");
        }
        let timer = rig.commands.get(id).await.unwrap();
        assert_eq!((timer.status, timer.revision), (Status::Paused, 2));
    }

    #[tokio::test]
    async fn a_change_meanwhile_is_shown_and_not_overwritten() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let path = format!("/console/timers/{id}/edit");
        rig.commands.pause(id, None, None).await.unwrap();
        let met = rig.post(&path, &format!("{FORM}&revision=1")).await;
        assert_eq!(met.status, 412);
        for part in
            ["was changed meanwhile", "https://api.example/new", "https://api.shop.example/hook", "name=\"revision\" value=\"2\""]
        {
            assert!(met.text.contains(part), "{part}: {}", met.text);
        }
        assert_eq!(rig.commands.get(id).await.unwrap().status, Status::Paused);
        assert_eq!(rig.post(&path, &format!("{FORM}&revision=2")).await.status, 303);
    }

    #[tokio::test]
    async fn every_field_of_the_retries_is_compared() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let retries = "&max_retries=3&initial_interval=7s&backoff_multiplier=3.5&max_interval=9m&max_duration=11h&revision=9";
        let met = rig.post(&format!("/console/timers/{id}/edit"), &format!("{FORM}{retries}")).await;
        assert_eq!(met.status, 412);
        let table = met.text.split("aria-label=\"Both versions\"").nth(1).and_then(|rest| rest.split("</table>").next()).unwrap();
        for value in ["max retries", "7s", "3.5", "9m", "11h"] {
            assert!(table.contains(value), "{value}: {table}");
        }
    }
}
