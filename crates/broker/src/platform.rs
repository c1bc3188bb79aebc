//! The subjects that belong to the platform. A message there is taken for a command of any tenant, or for an event, so
//! callbacks must not reach them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use domain::{Subject, SubjectPattern};
use tokio::sync::watch;

/// Reserved wherever NATS is configured: another node may consume commands even if this one does not. `$…` and `_INBOX…` are no
/// valid callback subjects at all; the last two are used by the servers among themselves.
const ALWAYS: [&str; 4] = [crate::nats::COMMANDS_SUBJECTS, crate::nats::EVENTS_SUBJECTS, "_R_.>", "_GR_.>"];

/// The reserved subjects: the default ones, and those that the streams really listen on. Cheap to clone: clones are the same.
#[derive(Debug, Clone)]
pub struct PlatformSubjects {
    always: Arc<[SubjectPattern]>,
    /// The patterns learned, by the name of the stream.
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
    /// The reserved pattern that covers this subject.
    pub fn owning(&self, subject: &Subject) -> Option<SubjectPattern> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let all = self.always.iter().chain(learned.values().flatten());
        all.into_iter().find(|pattern| subject.matches(pattern)).cloned()
    }

    /// Whether the streams have been asked for their subjects. Until then callbacks must not be published.
    pub fn known(&self) -> watch::Receiver<bool> {
        self.is_known.subscribe()
    }

    pub(crate) fn set_known(&self) {
        self.is_known.send_replace(true);
    }

    /// Records what a stream listens on. Subjects that no callback can name are skipped.
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
