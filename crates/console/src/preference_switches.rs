//! The switches of preferences that every page has: forms, so that they work without script.

use maud::{Markup, html};

use crate::{
    frame,
    preferences::{DENSITY, LOCAL, Preferences, THEME, ZONE, ZONE_CHARS_MAX},
    visitor::Visitor,
};

/// What the keys do. The script shows it on `?`.
pub(crate) fn shortcuts_list(visitor: &Visitor) -> Markup {
    let pages = frame::shortcuts(visitor).map(|(key, name)| (format!("g {key}"), name.to_lowercase()));
    let others = [
        ("j k", "next and previous row"),
        ("x", "select the row"),
        ("Enter", "open the row"),
        ("e", "edit the timer, or the chosen row"),
        ("f", "fire it now"),
        ("r", "retry it"),
        ("c", "cancel it"),
        ("l", "live updates on and off"),
        ("z", "time zone UTC, local and named"),
        ("?", "this list"),
    ];
    let keys = [("/".to_owned(), "search".to_owned())]
        .into_iter()
        .chain(pages)
        .chain(others.map(|(key, what)| (key.to_owned(), what.to_owned())));
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
