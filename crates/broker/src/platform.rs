//! The subjects that are the platform's own. What is published there is taken for a command of any tenant, or for an event: callbacks
//! must not reach them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use domain::{Subject, SubjectPattern};
use tokio::sync::watch;

/// Closed wherever NATS is configured: another node may take commands, even if this one does not. `$…` and `_INBOX…` are no subjects of a
/// callback at all; the other two are those of the servers among themselves.
const ALWAYS: [&str; 4] = [crate::nats::COMMANDS_SUBJECTS, crate::nats::EVENTS_SUBJECTS, "_R_.>", "_GR_.>"];

/// The platform's own subjects: those that it uses unless told otherwise, and those that its streams listen on in fact. Cheap to clone:
/// clones are the same.
#[derive(Debug, Clone)]
pub struct PlatformSubjects {
    always: Arc<[SubjectPattern]>,
    /// By the name of the stream.
    learned: Arc<RwLock<BTreeMap<String, Vec<SubjectPattern>>>>,
    is_known: watch::Sender<bool>,
}

impl Default for PlatformSubjects {
    fn default() -> Self {
        let always = ALWAYS.iter().filter_map(|text| SubjectPattern::parse("subject", text).ok()).collect();
        Self { always, learned: Arc::default(), is_known: watch::Sender::new(false) }
    }
}

impl PlatformSubjects {
    /// The pattern that makes this subject one of the platform's own.
    pub fn owning(&self, subject: &Subject) -> Option<SubjectPattern> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let all = self.always.iter().chain(learned.values().flatten());
        all.into_iter().find(|pattern| subject.matches(pattern)).cloned()
    }

    /// Whether it was asked what the streams listen on: until then callbacks must not be published.
    pub fn known(&self) -> watch::Receiver<bool> {
        self.is_known.subscribe()
    }

    pub(crate) fn set_known(&self) {
        self.is_known.send_replace(true);
    }

    /// Takes note of what a stream listens on. Subjects that no callback can name are passed over.
    pub(crate) fn learn<'a>(&self, stream: &str, subjects: impl IntoIterator<Item = &'a str>) {
        let patterns: Vec<_> = subjects.into_iter().filter_map(|text| SubjectPattern::parse("subject", text).ok()).collect();
        self.learned.write().unwrap_or_else(PoisonError::into_inner).insert(stream.to_owned(), patterns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_subjects_are_closed_and_what_a_stream_listens_on_too() {
        let platform = PlatformSubjects::default();
        let owning = |text: &str| platform.owning(&Subject::parse(text).unwrap()).map(|pattern| pattern.to_string());
        for (subject, expected) in [
            ("timer.commands.schedule", Some("timer.commands.>")),
            ("timer.commands.dead", Some("timer.commands.>")),
            ("timer.events.due.acme", Some("timer.events.>")),
            ("_R_.x", Some("_R_.>")),
            ("timer.commands", None),
            ("timer.other", None),
            ("acme.in.schedule", None),
        ] {
            assert_eq!(owning(subject).as_deref(), expected, "{subject}");
        }
        platform.clone().learn("TIMER_COMMANDS", ["acme.in.*", "not a subject"]);
        assert_eq!(owning("acme.in.schedule").as_deref(), Some("acme.in.*"));
        assert_eq!(owning("timer.commands.schedule").as_deref(), Some("timer.commands.>"));
        platform.learn("TIMER_COMMANDS", []);
        assert_eq!(owning("acme.in.schedule"), None);
    }
}
