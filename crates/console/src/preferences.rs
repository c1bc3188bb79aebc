//! How a viewer wants pages to look: kept in cookies, so that a page is right from its first byte.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, header};
use maud::{Markup, html};

use crate::{Shared, cookie, cookie::Kept, fields::Form, frame, problem::Problem, visitor::Visitor, zone::Zone};

const KEPT_SECONDS: i64 = 365 * 24 * 60 * 60;
const ZONE_CHARS_MAX: usize = 64;
/// The zone of the browser, which only its script knows.
const LOCAL: &str = "local";

/// One thing that a viewer may choose: its field, its cookie, and what it may be. The first is what holds without a choice.
struct Choice {
    field: &'static str,
    cookie: &'static str,
    values: &'static [&'static str],
}

const THEME: Choice = Choice { field: "theme", cookie: "timer-theme", values: &["auto", "light", "dark"] };
const DENSITY: Choice = Choice { field: "density", cookie: "timer-density", values: &["comfortable", "compact"] };
const SHORTCUTS: Choice = Choice { field: "shortcuts", cookie: "timer-shortcuts", values: &["on", "off"] };
/// A zone is one of these, or a name such as `Europe/Berlin`.
const ZONE: Choice = Choice { field: "zone", cookie: "timer-zone", values: &["UTC", LOCAL] };
/// Keeps the zone with a name that was chosen last, so that switching to another one does not lose it.
const NAMED_ZONE_COOKIE: &str = "timer-named-zone";
const ALL: [&Choice; 4] = [&THEME, &DENSITY, &SHORTCUTS, &ZONE];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preferences {
    pub(crate) theme: String,
    pub(crate) density: String,
    pub(crate) shortcuts: String,
    pub(crate) zone: String,
    /// The zone with a name that was chosen last, if there is one.
    pub(crate) named_zone: Option<String>,
    /// `None` is UTC, also where the zone of the browser is wanted: its script goes on from there.
    pub(crate) known_zone: Option<Zone>,
}

impl Default for Preferences {
    fn default() -> Self {
        Self::read(&HeaderMap::new())
    }
}

impl Preferences {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let chosen = |choice: &Choice| {
            let kept = cookie::read(headers, choice.cookie).filter(|value| choice.allows(value));
            kept.unwrap_or(choice.values[0]).to_owned()
        };
        let zone = chosen(&ZONE);
        let known_zone = Some(&zone).filter(|zone| !ZONE.values.contains(&zone.as_str())).and_then(|name| Zone::named(name));
        let kept = || cookie::read(headers, NAMED_ZONE_COOKIE).filter(|name| is_zone_name(name)).map(str::to_owned);
        let named_zone = known_zone.is_some().then(|| zone.clone()).or_else(kept);
        Self { theme: chosen(&THEME), density: chosen(&DENSITY), shortcuts: chosen(&SHORTCUTS), zone, named_zone, known_zone }
    }
}

impl Preferences {
    /// The zone that the switch in the bar leads to: from UTC to that of the browser, to the one with a name, and back.
    fn next_zone(&self) -> &str {
        match (self.zone.as_str(), self.named_zone.as_deref()) {
            ("UTC", _) => LOCAL,
            (LOCAL, Some(named)) => named,
            _ => "UTC",
        }
    }
}

impl Choice {
    fn allows(&self, value: &str) -> bool {
        self.values.contains(&value) || (self.field == ZONE.field && is_zone_name(value))
    }
}

fn is_zone_name(name: &str) -> bool {
    name.len() <= ZONE_CHARS_MAX && name != "UTC" && Zone::named(name).is_some()
}

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
        let kept = Kept { path: &path, is_secure: false, is_http_only: false, seconds: KEPT_SECONDS };
        if let Some(set) = cookie::write(name, value, kept) {
            response.headers_mut().append(header::SET_COOKIE, set);
        }
    }
    response
}

/// Whether a path leads to a page of the console, and nowhere else.
pub(crate) fn is_own_path(path: &str) -> bool {
    let rest = path.strip_prefix("/console");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?'])) && !path.contains(['\\', '\r', '\n'])
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
        section.card { header { h2 { "Keyboard" } } div.body { (shortcuts_list()) } }
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

/// What the keys do. The script shows it on `?`.
pub(crate) fn shortcuts_list() -> Markup {
    let keys = [
        ("/", "search"),
        ("g o", "overview"),
        ("g t", "timers"),
        ("g f", "failed"),
        ("g d", "destinations"),
        ("g c", "cluster"),
        ("j k", "next and previous row"),
        ("x", "select the row"),
        ("Enter", "open the row"),
        ("e", "edit"),
        ("f", "fire now"),
        ("r", "retry"),
        ("c", "cancel"),
        ("l", "live updates on and off"),
        ("z", "time zone UTC, local and named"),
        ("?", "this list"),
    ];
    html! {
        dl.keys { @for (key, what) in keys {
            dt { @for key in key.split(' ') { kbd { (key) } " " } } dd { (what) }
        } }
    }
}

/// The switches at the foot of every page: forms, so that they work without script.
pub(crate) fn switches(visitor: &Visitor) -> Markup {
    let Preferences { theme, .. } = &visitor.preferences;
    html! {
        form.segmented.switch method="post" action=(visitor.link("/preferences")) aria-label="Theme" {
            input type="hidden" name="back" value=(visitor.path);
            @for value in THEME.values {
                button name=(THEME.field) value=(value) aria-pressed=(value == theme) title={ "Theme: " (value) } { (value) }
            }
        }
    }
}

/// The switch of the time zone in the bar.
pub(crate) fn zone_switch(visitor: &Visitor) -> Markup {
    let (zone, other) = (&visitor.preferences.zone, visitor.preferences.next_zone());
    // The script writes its own name instead, once it has turned the times.
    let shown = if zone == LOCAL { "UTC" } else { zone };
    html! {
        form.plain method="post" action=(visitor.link("/preferences")) {
            input type="hidden" name="back" value=(visitor.path);
            button #zone .quiet name=(ZONE.field) value=(other) title={ "Time zone; switch to " (other) } { (shown) }
        }
    }
}

/// A zone by its name, and the density: in the bar of every page.
pub(crate) fn view_menu(visitor: &Visitor) -> Markup {
    let Preferences { density, named_zone, .. } = &visitor.preferences;
    html! {
        details.menu {
            summary.button.quiet aria-label="Time zone and density" title="Time zone and density" { span aria-hidden="true" { "▾" } }
            div {
                form.stack method="post" action=(visitor.link("/preferences")) {
                    input type="hidden" name="back" value=(visitor.path);
                    label { "Time zone"
                        span.pick {
                            input type="text" name=(ZONE.field) value=(named_zone.as_deref().unwrap_or_default()) placeholder="Europe/Berlin" maxlength=(ZONE_CHARS_MAX) data-zones autocomplete="off" spellcheck="false";
                            button { "Set" }
                        }
                    }
                }
                form.stack method="post" action=(visitor.link("/preferences")) {
                    input type="hidden" name="back" value=(visitor.path);
                    fieldset { legend { "Density" }
                        span.segmented { @for value in DENSITY.values {
                            button name=(DENSITY.field) value=(value) aria-pressed=(value == density) { (value) }
                        } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_with_a_name_is_not_lost_by_switching() {
        let with = |cookies: &str| Preferences::read(&HeaderMap::from_iter([(header::COOKIE, cookies.parse().unwrap())]));
        for (cookies, next) in [
            ("", LOCAL),
            ("timer-zone=local", "UTC"),
            ("timer-zone=Europe/Berlin", "UTC"),
            ("timer-zone=UTC; timer-named-zone=Europe/Berlin", LOCAL),
            ("timer-zone=local; timer-named-zone=Europe/Berlin", "Europe/Berlin"),
            ("timer-zone=local; timer-named-zone=Europe/Atlantis", "UTC"),
        ] {
            assert_eq!(with(cookies).next_zone(), next, "{cookies}");
        }
    }

    #[test]
    fn only_what_may_be_chosen_is_kept() {
        for (choice, value, allowed) in [
            (&THEME, "dark", true),
            (&THEME, "pink", false),
            (&ZONE, "Europe/Berlin", true),
            (&ZONE, "Etc/GMT+2", true),
            (&ZONE, "Europe/Atlantis", false),
            (&ZONE, "Berlin", false),
            (&ZONE, "a/b;Path=/", false),
            (&DENSITY, "a/b", false),
        ] {
            assert_eq!(choice.allows(value), allowed, "{value}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_console() {
        for (path, own) in [
            ("/console", true),
            ("/console/timers?q=a", true),
            ("/console?range=1h", true),
            ("/consolexyz", false),
            ("//evil.example", false),
            ("https://evil.example", false),
            ("/console/\\evil", false),
            ("", false),
        ] {
            assert_eq!(is_own_path(path), own, "{path}");
        }
    }
}
