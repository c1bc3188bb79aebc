//! What can be done to one timer: a page that says what will happen, with a form that does it.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use commands::CommandError;
use domain::{Event, Missed, Status, Timer, limits};
use http::HeaderMap;
use maud::{Markup, html};

use crate::{
    fields::Form,
    frame::{self, Section},
    named_timer,
    problem::Problem,
    text,
    visitor::Visitor,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Fire,
    Retry,
    Pause,
    Resume,
    Cancel,
}

impl Action {
    pub(crate) const ALL: [Self; 5] = [Self::Fire, Self::Retry, Self::Pause, Self::Resume, Self::Cancel];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fire => "fire",
            Self::Retry => "retry",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Fire => "Fire now",
            Self::Retry => "Retry",
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Cancel => "Cancel",
        }
    }

    /// The key that asks for it.
    pub(crate) const fn key(self) -> Option<&'static str> {
        match self {
            Self::Fire => Some("f"),
            Self::Retry => Some("r"),
            Self::Cancel => Some("c"),
            Self::Pause | Self::Resume => None,
        }
    }

    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Cancel)
    }

    /// Whether the status of a timer permits it.
    pub(crate) const fn is_possible(self, status: Status) -> bool {
        match self {
            Self::Fire => matches!(status, Status::Pending),
            Self::Retry => status.after(Event::Reopen).is_some(),
            Self::Pause => status.after(Event::Pause).is_some(),
            Self::Resume => status.after(Event::Resume).is_some(),
            Self::Cancel => status.after(Event::Cancel).is_some(),
        }
    }

    const fn consequence(self) -> &'static str {
        match self {
            Self::Fire => "It becomes due now, and its call is made at once. Its content stays as it is.",
            Self::Retry => {
                "It becomes due again now, with a new count of attempts. The receiver recognises the call by the same webhook-id."
            }
            Self::Pause => "It is taken out of what is due until it is resumed.",
            Self::Resume => "It is pending again, and fires when it is due.",
            Self::Cancel => "It will never fire. This cannot be undone.",
        }
    }

    pub(crate) const fn done(self) -> &'static str {
        match self {
            Self::Fire => "The timer is due now.",
            Self::Retry => "The timer is tried again now.",
            Self::Pause => "The timer is paused.",
            Self::Resume => "The timer is resumed.",
            Self::Cancel => "The timer is canceled.",
        }
    }
}

/// `GET /console/timers/{id}/{action}`: what would happen.
pub(crate) async fn confirm(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Markup, Problem> {
    let action = Action::parse(&action).ok_or(Problem::NoSuchPage)?;
    let timer = named_timer::read(&visitor, &id).await?;
    visitor.check_may_write()?;
    let title = format!("{}?", action.title());
    // The script asks for the form alone, and shows it in a dialog.
    if headers.contains_key("x-fragment") {
        return Ok(form(&visitor, action, &timer, &html! { h2 #confirm-title { (title) } }));
    }
    let heading = html! { h1 #confirm-title { (title) } };
    let body = html! { section.card.narrow { div.body { (form(&visitor, action, &timer, &heading)) } } };
    Ok(frame::page(&visitor, Some(Section::Timers), action.title(), body))
}

fn form(visitor: &Visitor, action: Action, timer: &Timer, heading: &Markup) -> Markup {
    let page = visitor.link(&format!("/timers/{}", timer.id()));
    html! {
        form #confirm .stack method="post" action={ (page) "/" (action.name()) } aria-labelledby="confirm-title" {
            (heading)
            p { strong.mono { (named_timer::name_of(timer)) } span.muted { " in " (timer.definition.namespace) ", due " (text::time(visitor, timer.execute_at)) } }
            p { (action.consequence()) }
            input type="hidden" name="revision" value=(timer.revision);
            @if action == Action::Pause {
                label { "Note" span.hint { "Shown with the timer while it is paused; may be left empty." }
                    input type="text" name="note" maxlength=(limits::PAUSE_NOTE_CHARS_MAX);
                }
            }
            @if action == Action::Resume {
                fieldset { legend { "If it was due meanwhile" }
                    label.inline { input type="radio" name="missed" value="fire" checked; "call now" }
                    label.inline { input type="radio" name="missed" value="expire"; "let it expire" }
                }
            }
            div.actions {
                a.button data-close href=(page) { "Back" }
                @if action.is_final() { button.danger { (action.title()) " timer" } } @else { button.main { (action.title()) } }
            }
        }
    }
}

/// `POST /console/timers/{id}/{action}`: does it, if the timer is still the one that was looked at.
pub(crate) async fn act(
    visitor: Visitor,
    Path((id, action)): Path<(String, String)>,
    Form(form): Form,
) -> Result<Response, Problem> {
    let action = Action::parse(&action).ok_or(Problem::NoSuchPage)?;
    let id = domain::TimerId::parse("id", &id).map_err(|_| Problem::NoSuchPage)?;
    let expected = form.get("revision").and_then(|revision| revision.parse().ok());
    carry_out(&visitor, action, id, expected, form.get("note"), form.get("missed")).await?;
    Ok(Redirect::to(&visitor.link(&format!("/timers/{id}?done={}", action.name()))).into_response())
}

/// One action on one timer.
pub(crate) async fn carry_out(
    visitor: &Visitor,
    action: Action,
    id: domain::TimerId,
    expected: Option<u32>,
    note: Option<&str>,
    missed: Option<&str>,
) -> Result<Timer, CommandError> {
    let commands = &visitor.commands;
    match action {
        Action::Fire => commands.fire(id, expected).await,
        Action::Retry => commands.retry(id, expected).await,
        Action::Cancel => commands.cancel(id, expected).await,
        Action::Pause => {
            let note = note.map(str::trim).filter(|note| !note.is_empty());
            if note.is_some_and(|note| note.chars().count() > limits::PAUSE_NOTE_CHARS_MAX || note.chars().any(char::is_control))
            {
                let rule = format!("must have at most {} printable characters", limits::PAUSE_NOTE_CHARS_MAX);
                return Err(domain::Invalid::new("note", rule).into());
            }
            commands.pause(id, expected, note).await
        }
        Action::Resume => commands.resume(id, expected, missed.and_then(Missed::parse).unwrap_or_default()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Rig;

    #[tokio::test]
    async fn an_action_is_confirmed_and_counts_for_what_was_looked_at() {
        let rig = Rig::new();
        let id = rig.timer("k", "a").await;
        let path = format!("/console/timers/{id}");
        let asked = rig.get(&format!("{path}/pause")).await;
        assert!(asked.status == 200 && asked.text.contains("name=\"revision\" value=\"1\""), "{}", asked.text);
        let done = rig.post(&format!("{path}/pause"), "revision=1&note=audit").await;
        assert_eq!(
            (done.status.as_u16(), done.headers["location"].to_str().unwrap()),
            (303, format!("{path}?done=pause").as_str())
        );
        let page = rig.get(&format!("{path}?done=pause")).await;
        assert!(page.text.contains("The timer is paused.") && page.text.contains("audit"), "{}", page.text);

        let stale = rig.post(&format!("{path}/cancel"), "revision=1").await;
        assert!(stale.status == 412 && stale.text.contains("It has changed meanwhile"), "{}", stale.text);
        assert_eq!(rig.post(&format!("{path}/resume"), "missed=fire").await.status, 303);
        assert_eq!(rig.post(&format!("{path}/cancel"), "").await.status, 303);
        assert_eq!(rig.post(&format!("{path}/fire"), "").await.status, 409);
        assert_eq!(rig.post(&format!("{path}/explode"), "").await.status, 404);
    }

    #[test]
    fn an_action_is_offered_where_the_status_permits_it() {
        for (action, statuses) in [
            (Action::Fire, &[Status::Pending][..]),
            (Action::Retry, &[Status::Failed, Status::Expired]),
            (Action::Pause, &[Status::Pending]),
            (Action::Resume, &[Status::Paused]),
            (Action::Cancel, &[Status::Pending, Status::Paused]),
        ] {
            let possible: Vec<_> = Status::ALL.into_iter().filter(|status| action.is_possible(*status)).collect();
            assert_eq!(possible, statuses, "{action:?}");
        }
    }
}
