//! What can be done to many timers, whether a filter or a selection names them: the fields of its form, what they mean, and the answer.

use commands::{BulkWork, Reschedule, Shift};
use domain::{Invalid, Missed, Span, TimerId, Timestamp};
use maud::{Markup, html};

use crate::{
    fields::Fields,
    frame::{self, Section},
    problem::sentence,
    text,
    visitor::Visitor,
};

/// What one kind of work needs to know.
pub(super) fn parameters(name: &str, over: &str) -> Markup {
    html! {
        @if name == "reschedule" {
            fieldset.stack { legend { "New due time" }
                label.inline { input type="radio" name="how" value="shift" checked; "shift each by" }
                input type="text" name="shift" value="+1h" aria-label="Shift each by" placeholder="+1h or -10m";
                label.inline { input type="radio" name="how" value="spread"; "spread evenly from now over" }
                input type="text" name="spread" value="10m" aria-label="Spread over";
                label.inline { input type="radio" name="how" value="at"; "all at" }
                input type="text" name="at" aria-label="All at" placeholder="2030-01-31T12:00:00Z";
            }
        }
        @if name == "retry" {
            label { "Spread over" span.hint { "10m: the attempts are made over ten minutes; left empty, all of them now." }
                input type="text" name="over" value=(over) placeholder="10m" autocomplete="off";
            }
        }
        @if name == "pause" { label { "Note" input type="text" name="note" maxlength="255"; } }
    }
}

pub(super) fn work_of(name: &str, form: &Fields) -> Result<BulkWork, Invalid> {
    Ok(match name {
        "cancel" => BulkWork::Cancel,
        "fire" => BulkWork::Fire,
        "retry" => BulkWork::Retry { over: form.get("over").map(|over| Span::parse("over", over)).transpose()? },
        "pause" => BulkWork::Pause { note: form.get("note").map(str::to_owned) },
        "resume" => BulkWork::Resume { missed: form.get("missed").and_then(Missed::parse).unwrap_or_default() },
        "expire" => BulkWork::Expire,
        "delete" => BulkWork::Delete,
        _ => BulkWork::Reschedule(match form.get("how") {
            Some("at") => Reschedule::At(Timestamp::parse("at", form.get("at").unwrap_or_default())?),
            Some("spread") => Reschedule::Spread(Span::parse("spread", form.get("spread").unwrap_or_default())?),
            _ => Reschedule::Shift(Shift::parse("shift", form.get("shift").unwrap_or_default())?),
        }),
    })
}

/// What became of a change that was made at once.
pub(super) fn done(
    visitor: &Visitor,
    title: &str,
    changed: u64,
    skipped: u64,
    refused: &[(TimerId, String)],
    back: &str,
) -> Markup {
    let body = html! {
        div.title { h1 { (title) ": done" } }
        section.card { div.body.stack role="status" {
            p { strong { (text::counted(changed, "timer", "timers")) } " changed"
                @if skipped > 0 { ", " (text::number(skipped)) " left alone: their status does not permit it, or they were changed meanwhile" } "." }
            @if !refused.is_empty() {
                ul { @for (id, why) in refused { li { a.mono href=(visitor.link(&format!("/timers/{id}"))) { (id) } ": " (sentence(why)) } } }
            }
            div { a.button.main href=(back) { "Back to the list" } }
        } }
    };
    frame::page(visitor, Some(Section::Operations), title, body)
}

/// Whether it cannot be undone.
pub(super) fn is_final(name: &str) -> bool {
    matches!(name, "cancel" | "delete" | "expire")
}
