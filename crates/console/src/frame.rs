//! What stands around every page: the rail of pages, the bar above, and the frame of those who are not logged in.

use std::sync::Arc;

use domain::Namespaces;
use maud::{DOCTYPE, Markup, html};

use crate::{
    Shared,
    assets::{ICON_FILE, SCRIPT_FILE, STYLE_FILE},
    known_health, namespace_picker, preference_switches,
    preferences::Preferences,
    visitor::Visitor,
};

/// The pages of the rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Timers,
    Failed,
    Operations,
    Destinations,
    Namespaces,
    Keys,
    Cluster,
    Inbox,
    About,
}

/// A page of the rail: its name, its path, the key behind `g`, and whether it is for the administrator.
struct Entry {
    section: Section,
    name: &'static str,
    path: &'static str,
    shortcut: &'static str,
    is_for_administrator: bool,
}

impl Entry {
    fn is_shown_to(&self, visitor: &Visitor) -> bool {
        let is_there = self.section != Section::Inbox || visitor.shared.config.dev.is_some();
        is_there && (!self.is_for_administrator || visitor.is_administrator())
    }
}

static ENTRIES: [Entry; 9] = [
    Entry { section: Section::Overview, name: "Overview", path: "", shortcut: "o", is_for_administrator: false },
    Entry { section: Section::Timers, name: "Timers", path: "/timers", shortcut: "t", is_for_administrator: false },
    Entry { section: Section::Failed, name: "Failed", path: "/failed", shortcut: "f", is_for_administrator: false },
    Entry { section: Section::Operations, name: "Operations", path: "/operations", shortcut: "", is_for_administrator: false },
    Entry {
        section: Section::Destinations,
        name: "Destinations",
        path: "/destinations",
        shortcut: "d",
        is_for_administrator: false,
    },
    Entry { section: Section::Namespaces, name: "Namespaces", path: "/namespaces", shortcut: "n", is_for_administrator: false },
    Entry { section: Section::Keys, name: "Keys", path: "/keys", shortcut: "k", is_for_administrator: true },
    Entry { section: Section::Cluster, name: "Cluster", path: "/cluster", shortcut: "c", is_for_administrator: true },
    Entry { section: Section::Inbox, name: "Inbox", path: "/inbox", shortcut: "i", is_for_administrator: true },
];

/// The keys behind `g` and the pages that they open, of those that this viewer has.
pub(crate) fn shortcuts(visitor: &Visitor) -> impl Iterator<Item = (&'static str, &'static str)> {
    let shown = ENTRIES.iter().filter(move |entry| entry.is_shown_to(visitor) && !entry.shortcut.is_empty());
    shown.map(|entry| (entry.shortcut, entry.name))
}

/// A page of a viewer that has logged in.
pub(crate) fn page(visitor: &Visitor, section: Option<Section>, title: &str, body: Markup) -> Markup {
    let content = html! {
        a.skip href="#main" { "Skip to content" }
        div.frame {
            nav.rail aria-label="Pages" { (rail(visitor, section)) }
            div.sheet {
                div.bar role="banner" { (bar(visitor, section)) }
                p #away .notice.bad role="alert" hidden { "The store does not answer. What you see may be out of date; the page keeps trying." }
                main #main tabindex="-1" { (body) }
            }
        }
        dialog #dialog {}
        dialog #shortcuts aria-label="Keyboard shortcuts" {
            h2 { "Keyboard" } (preference_switches::shortcuts_list(visitor))
            form.actions method="dialog" { button { "Close" } }
        }
    };
    document(&visitor.shared, &visitor.preferences, title, content)
}

/// A page for those who have not.
pub(crate) fn bare(shared: &Arc<Shared>, preferences: &Preferences, title: &str, body: Markup) -> Markup {
    let content = html! {
        main #main .bare { a.brand href={ (shared.config.base_path) "/console" } { (logo()) "Timer" } (body) }
    };
    document(shared, preferences, title, content)
}

fn document(shared: &Shared, preferences: &Preferences, title: &str, content: Markup) -> Markup {
    let base = &shared.config.base_path;
    let theme = Some(preferences.theme.as_str()).filter(|theme| *theme != "auto");
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] data-density=(preferences.density) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title) " · Timer" }
                link rel="icon" href=(ICON_FILE.link(base));
                link rel="stylesheet" href=(STYLE_FILE.link(base));
                script type="module" src=(SCRIPT_FILE.link(base)) {}
            }
            body data-base={ (base) "/console" } data-now=(shared.unrestricted.clock.now()) data-zone=(preferences.zone) data-shortcuts=(preferences.shortcuts) { (content) }
        }
    }
}

fn logo() -> Markup {
    html! {
        svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" aria-hidden="true" {
            circle cx="10" cy="11" r="7" {}
            path d="M10 7v4l2.5 2M7.5 1.5h5" {}
        }
    }
}

fn rail(visitor: &Visitor, section: Option<Section>) -> Markup {
    html! {
        div.top {
            a.brand href=(visitor.link("")) { (logo()) "Timer" }
            div.links { @for entry in ENTRIES.iter().filter(|entry| entry.is_shown_to(visitor)) {
                a.page href=(visitor.link(entry.path)) aria-current=[(Some(entry.section) == section).then_some("page")]
                    data-go=(entry.shortcut) { (entry.name) }
            } }
        }
        div.foot {
            a href={ (visitor.shared.config.base_path) "/docs" } { "API docs" }
            a href=(visitor.link("/about")) aria-current=[(section == Some(Section::About)).then_some("page")] { "About" }
            a href=(visitor.link("/preferences")) { "Preferences" }
            (preference_switches::switches(visitor))
            span #whoami title=(rights(visitor)) { strong { (visitor.name()) } span { @if visitor.may_write() { "read, write" } @else { "read only" } } }
            form.plain method="post" action=(visitor.link("/logout")) { button.quiet { "Log out" } }
        }
    }
}

/// What the key of the viewer opens, in a sentence.
fn rights(visitor: &Visitor) -> String {
    match &visitor.commands.caller {
        domain::Caller::Administrator => "The administrator's key: every namespace, and the keys".to_owned(),
        domain::Caller::Holder(key) => match &key.access.namespaces {
            Namespaces::All => "Every namespace".to_owned(),
            Namespaces::Only(names) => {
                format!("Namespaces: {}", names.iter().map(domain::Namespace::as_str).collect::<Vec<_>>().join(", "))
            }
        },
    }
}

fn bar(visitor: &Visitor, section: Option<Section>) -> Markup {
    html! {
        form.search role="search" action=(visitor.link("/timers")) {
            input #search type="search" name="q" aria-label="Search timers" autocomplete="off" spellcheck="false"
                placeholder="Search: an id, a key, or status:failed ns:billing …";
        }
        span.spacer {}
        (namespace_picker::picker(visitor, if section == Some(Section::Overview) { "" } else { "/timers" }))
        (known_health::dot(visitor, visitor.is_database_away))
        (preference_switches::zone_switch(visitor))
        (preference_switches::view_menu(visitor))
        button #live .quiet type="button" hidden aria-pressed="true" title="Live updates (l)" { "● Live" }
    }
}
