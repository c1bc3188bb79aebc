//! What the fields of a form mean: when the timer fires, and when it is tried again. Every answer to the form says it; where there is
//! script, it is asked again while the form is being filled in.

use domain::{RequestedTime, Timestamp};
use maud::{Markup, html};

use crate::{
    retry_curve,
    text::{self, distance},
    timer_form::TimerForm,
    visitor::Visitor,
};

/// Both, as the script asks for them.
pub(crate) fn fragment(visitor: &Visitor, form: &TimerForm) -> Markup {
    html! { (fires(visitor, form)) (retries(form)) }
}

/// The time that is asked for, as a sentence; nothing while it cannot be read.
pub(crate) fn fires(visitor: &Visitor, form: &TimerForm) -> Markup {
    let due = match form.asked() {
        Ok(Some(RequestedTime::At(at))) => Some(at),
        Ok(Some(RequestedTime::After(span))) => visitor.now().checked_add(span),
        _ => None,
    };
    html! { p #form-fires .told aria-live="polite" { @if let Some(due) = due { (told(visitor, form, due)) } } }
}

/// `Fires Sun 31 Jan 2027 10:30:00 UTC = Sun 11:30:00 Europe/Berlin, in 2 h 3 min.`
pub(crate) fn told(visitor: &Visitor, form: &TimerForm, due: Timestamp) -> Markup {
    let of_form = form.get("zone").filter(|name| form.is_instant() && *name != "UTC").map(str::to_owned).zip(form.zone().ok());
    let own = visitor.preferences.known_zone.clone().map(|zone| (visitor.preferences.zone.clone(), zone));
    let zone = of_form.or(own);
    html! {
        @if due > visitor.now() { "Fires " } @else { "Would have been due " }
        strong { (text::weekday(due)) " " (text::instant(due, false)) " UTC" }
        @if let Some((name, zone)) = zone {
            @let wall = zone.wall_clock(due);
            " = " (text::weekday(wall)) " " (text::clock(wall)) " " (name)
        }
        ", " (distance(visitor, due)) "."
    }
}

/// The attempts that the retry policy of the form means.
pub(crate) fn retries(form: &TimerForm) -> Markup {
    html! {
        div #form-retries {
            @match form.retry_policy() {
                Ok(Some(policy)) => { (retry_curve::of_policy(&policy)) }
                Ok(None) => { p.hint { "One attempt, unless its namespace has a retry policy." } }
                Err(_) => {}
            }
        }
    }
}
