//! How a viewer wants pages to look: kept in cookies, so that a page is right from its first byte.

use http::HeaderMap;

use crate::{cookie, zone::Zone};

pub(crate) const ZONE_CHARS_MAX: usize = 64;
/// The zone of the browser, which only its script knows.
pub(crate) const LOCAL: &str = "local";

/// One thing that a viewer may choose: its field, its cookie, and what it may be. The first is what holds without a choice.
pub(crate) struct Choice {
    pub(crate) field: &'static str,
    pub(crate) cookie: &'static str,
    pub(crate) values: &'static [&'static str],
}

pub(crate) const THEME: Choice = Choice { field: "theme", cookie: "timer-theme", values: &["auto", "light", "dark"] };
pub(crate) const DENSITY: Choice = Choice { field: "density", cookie: "timer-density", values: &["comfortable", "compact"] };
pub(crate) const SHORTCUTS: Choice = Choice { field: "shortcuts", cookie: "timer-shortcuts", values: &["on", "off"] };
/// A zone is one of these, or a name such as `Europe/Berlin`.
pub(crate) const ZONE: Choice = Choice { field: "zone", cookie: "timer-zone", values: &["UTC", LOCAL] };
/// Keeps the zone with a name that was chosen last, so that switching to another one does not lose it.
pub(crate) const NAMED_ZONE_COOKIE: &str = "timer-named-zone";
pub(crate) const ALL: [&Choice; 4] = [&THEME, &DENSITY, &SHORTCUTS, &ZONE];

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
    pub(crate) fn next_zone(&self) -> &str {
        match (self.zone.as_str(), self.named_zone.as_deref()) {
            ("UTC", _) => LOCAL,
            (LOCAL, Some(named)) => named,
            _ => "UTC",
        }
    }
}

impl Choice {
    pub(crate) fn allows(&self, value: &str) -> bool {
        self.values.contains(&value) || (self.field == ZONE.field && is_zone_name(value))
    }
}

pub(crate) fn is_zone_name(name: &str) -> bool {
    name.len() <= ZONE_CHARS_MAX && name != "UTC" && Zone::named(name).is_some()
}

/// Whether a path leads to a page of the console, and nowhere else.
pub(crate) fn is_own_path(path: &str) -> bool {
    let rest = path.strip_prefix("/console");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?'])) && !path.contains(['\\', '\r', '\n'])
}

#[cfg(test)]
mod tests {
    use http::header;

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
