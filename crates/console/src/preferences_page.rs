//! The page of preferences, and what keeps them.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use http::header;
use maud::{Markup, html};

use crate::{
    Shared,
    cookie::{self, CookieAttributes},
    fields::Form,
    frame,
    preference_switches::shortcuts_list,
    preferences::{
        ALL, Choice, DENSITY, LOCAL, NAMED_ZONE_COOKIE, Preferences, SHORTCUTS, THEME, ZONE, ZONE_CHARS_MAX, is_own_path,
        is_zone_name,
    },
    problem::Problem,
    visitor::Visitor,
    zone::Zone,
};

const KEPT_SECONDS: i64 = 365 * 24 * 60 * 60;

/// `POST /console/preferences`: keeps what is named, and leads back.
pub(crate) async fn set(State(shared): State<Arc<Shared>>, visitor: Visitor, Form(form): Form) -> Response {
    let path = visitor.link("");
    let back = form.get("back").filter(|back| is_own_path(back)).unwrap_or("/console");
    let mut response = Redirect::to(&format!("{}{back}", shared.config.base_path)).into_response();
    let chosen = |choice: &'static Choice| {
        let value = form.get(choice.field).map(str::trim).filter(|value| choice.allows(value));
        value.map(|value| (choice.cookie, value))
    };
    let named = chosen(&ZONE).filter(|(_, value)| is_zone_name(value)).map(|(_, value)| (NAMED_ZONE_COOKIE, value));
    for (name, value) in ALL.into_iter().filter_map(chosen).chain(named) {
        // The script reads them.
        let attributes = CookieAttributes { path: &path, is_secure: false, is_http_only: false, seconds: KEPT_SECONDS };
        if let Some(set) = cookie::write(name, value, attributes) {
            response.headers_mut().append(header::SET_COOKIE, set);
        }
    }
    response
}

/// `GET /console/preferences`.
pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let Preferences { theme, density, shortcuts, zone, .. } = &visitor.preferences;
    let body = html! {
        div.title { h1 { "Preferences" } span.muted { "kept in this browser" } }
        section.card { div.body {
            form.stack method="post" action=(visitor.link("/preferences")) {
                input type="hidden" name="back" value="/console/preferences";
                (options("Theme", &THEME, theme))
                (options("Density", &DENSITY, density))
                (options("Keyboard shortcuts", &SHORTCUTS, shortcuts))
                label { "Time zone"
                    span.hint { "UTC, local, or a name such as Europe/Berlin. Only local needs script." }
                    input type="text" name=(ZONE.field) value=(zone) list="zones" maxlength=(ZONE_CHARS_MAX);
                }
                datalist #zones { option value="UTC"; option value=(LOCAL); @for name in Zone::names().filter(|name| name.contains('/')) { option value=(name); } }
                div { button.main { "Save" } }
            }
        } }
        section.card { header { h2 { "Keyboard" } } div.body { (shortcuts_list(&visitor)) } }
    };
    Ok(frame::page(&visitor, None, "Preferences", body))
}

fn options(name: &str, choice: &Choice, chosen: &str) -> Markup {
    html! {
        fieldset { legend { (name) }
            @for value in choice.values {
                label.inline { input type="radio" name=(choice.field) value=(value) checked[*value == chosen]; (value) }
            }
        }
    }
}
