//! Kinds of callbacks by their names, and sets of kinds.

use std::fmt;

use super::{CallbackKind, info::Backend};

impl CallbackKind {
    /// The names of all kinds.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].as_str();
            at += 1;
        }
        names
    };

    pub const fn as_str(self) -> &'static str {
        self.info().name
    }

    /// The server without which no callback of this kind is sent. `None` where receivers are called directly.
    pub const fn backend(self) -> Option<Backend> {
        self.info().backend
    }

    /// Whether a call is a message that is published, and no request that its receiver answers.
    pub const fn is_message(self) -> bool {
        self.info().is_message
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for CallbackKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Some of the kinds of callbacks. Written out as a choice: `http or nats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KindSet(u8);

impl KindSet {
    pub const EMPTY: Self = Self(0);

    /// Those that clients may ask for.
    pub const REQUESTABLE: Self = {
        let mut set = Self::EMPTY;
        let mut at = 0;
        while at < CallbackKind::ALL.len() {
            let kind = CallbackKind::ALL[at];
            if kind.info().is_requestable {
                set = set.with(kind);
            }
            at += 1;
        }
        set
    };

    #[must_use]
    pub const fn with(self, kind: CallbackKind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn contains(self, kind: CallbackKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

impl FromIterator<CallbackKind> for KindSet {
    fn from_iter<I: IntoIterator<Item = CallbackKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for KindSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = CallbackKind::ALL.into_iter().filter(|kind| self.contains(*kind)).peekable();
        let mut separator = "";
        while let Some(kind) = names.next() {
            write!(f, "{separator}{kind}")?;
            let mut rest = names.clone();
            separator = if rest.next().is_some() && rest.next().is_none() { " or " } else { ", " };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{CallbackKind::*, *};

    #[test]
    fn a_set_is_written_as_a_choice() {
        for (kinds, text) in [
            (vec![], ""),
            (vec![Http], "http"),
            (vec![Nats, Http], "http or nats"),
            (vec![Http, Nats, Event], "http, nats or event"),
        ] {
            assert_eq!(kinds.into_iter().collect::<KindSet>().to_string(), text);
        }
        assert_eq!(KindSet::REQUESTABLE.to_string(), "http or nats");
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = KindSet::EMPTY.with(Nats).with(Event);
        assert_eq!(CallbackKind::ALL.map(|kind| set.contains(kind)), [false, true, true]);
        assert_eq!(set.intersection(KindSet::REQUESTABLE), KindSet::EMPTY.with(Nats));
    }

    #[test]
    fn kinds_are_found_by_their_names_and_stand_at_their_own_positions() {
        for (at, kind) in CallbackKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, CallbackKind::named(kind.as_str())), (at, Some(kind)));
        }
        assert_eq!(CallbackKind::NAMES, ["http", "nats", "event"]);
    }
}
