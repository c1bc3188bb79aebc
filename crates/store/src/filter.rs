//! Which timers are meant: one type for lists, counts, exports, bulk operations and events.
//!
//! A store narrows with its indexes as far as they go; what is left is decided here, for every store alike.

mod text;

use std::{borrow::Cow, collections::BTreeMap};

use domain::{CorrelationId, Group, JsonText, Key, MetadataPath, Namespace, Status, Timer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::text::FilterText;

/// Which timers are meant: those for which every condition holds. Written and read as the JSON object that clients send.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "FilterText", try_from = "FilterText")]
pub struct Filter {
    /// One of these; every status where none is named.
    pub status: Vec<Status>,
    /// One of these; every namespace where none is named.
    pub namespaces: Vec<Namespace>,
    pub key: Option<Key>,
    /// The caller's own key begins with this; timers without a key do not match.
    pub key_prefix: Option<String>,
    pub group: Option<Group>,
    /// `execute_at` lies in it.
    pub due: Period,
    /// `created_at` lies in it.
    pub created: Period,
    pub correlation_id: Option<CorrelationId>,
    /// Whom the timer calls: `host:port`, or a NATS subject.
    pub destination: Option<String>,
    /// Scalars of the metadata, by the text that they have: see [`MetadataPath::leads_to`].
    pub metadata: Vec<(MetadataPath, String)>,
    /// The metadata is an object with these members, each with this JSON text, blanks between tokens aside: the condition of
    /// `POST /timers/cancel`, which tells `1` from `"1"`.
    pub members: BTreeMap<String, String>,
    /// Is contained in the last error; case-sensitive.
    pub error: Option<String>,
}

/// From an instant, which is part of it, to another, which is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl Period {
    pub const ALWAYS: Self = Self { from: None, to: None };

    pub fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }

    pub fn is_always(&self) -> bool {
        *self == Self::ALWAYS
    }
}

/// What a filter asks about a timer, besides where it stands.
#[derive(Debug, Clone, Default)]
pub struct Candidate<'a> {
    pub namespace: &'a str,
    pub key: Option<&'a str>,
    pub group: Option<&'a str>,
    pub execute_at: Timestamp,
    pub created_at: Timestamp,
    pub correlation_id: Option<&'a str>,
    /// Only needed where [`Filter::reads_metadata`].
    pub metadata: Option<&'a str>,
    /// Only needed where the filter has a destination: see [`domain::Callback::address`].
    pub destination: Option<Cow<'a, str>>,
}

impl Filter {
    /// Whether it asks about nothing but status and namespace, which some stores have counted.
    pub fn is_by_status_and_namespace(&self) -> bool {
        *self == Self { status: self.status.clone(), namespaces: self.namespaces.clone(), ..Self::default() }
    }

    pub fn reads_metadata(&self) -> bool {
        !self.metadata.is_empty() || !self.members.is_empty()
    }

    /// Whether a timer in this status, with this last error, may match.
    pub fn fits_standing(&self, status: Status, last_error: Option<&str>) -> bool {
        self.fits_status(status) && self.error.as_deref().is_none_or(|part| last_error.is_some_and(|error| error.contains(part)))
    }

    pub fn fits_status(&self, status: Status) -> bool {
        self.status.is_empty() || self.status.contains(&status)
    }

    /// Whether the definition of a timer matches.
    pub fn fits_definition(&self, candidate: &Candidate<'_>) -> bool {
        (self.namespaces.is_empty() || self.namespaces.iter().any(|namespace| namespace.as_str() == candidate.namespace))
            && self.key.as_ref().is_none_or(|key| candidate.key == Some(key.as_str()))
            && self.key_prefix.as_deref().is_none_or(|prefix| candidate.key.is_some_and(|key| key.starts_with(prefix)))
            && self.group.as_ref().is_none_or(|group| candidate.group == Some(group.as_str()))
            && self.due.contains(candidate.execute_at)
            && self.created.contains(candidate.created_at)
            && self.correlation_id.as_ref().is_none_or(|id| candidate.correlation_id == Some(id.as_str()))
            && self.destination.as_deref().is_none_or(|destination| candidate.destination.as_deref() == Some(destination))
            && self.fits_metadata(candidate.metadata)
    }

    fn fits_metadata(&self, metadata: Option<&str>) -> bool {
        if !self.reads_metadata() {
            return true;
        }
        let Some(metadata) = metadata else { return false };
        self.metadata.iter().all(|(path, text)| path.leads_to(metadata, text)) && has_members(metadata, &self.members)
    }

    /// The whole decision, for a timer that is in memory.
    pub fn fits(&self, timer: &Timer) -> bool {
        let definition = &timer.definition;
        let candidate = Candidate {
            namespace: definition.namespace.as_str(),
            key: definition.key.as_ref().map(Key::as_str),
            group: definition.group.as_ref().map(Group::as_str),
            execute_at: timer.execute_at,
            created_at: timer.created_at,
            correlation_id: definition.correlation_id.as_ref().map(CorrelationId::as_str),
            metadata: definition.metadata.as_ref().map(JsonText::as_str),
            destination: self.destination.as_ref().and_then(|_| definition.callback.address().map(Cow::from)),
        };
        self.fits_standing(timer.status, timer.last_error.as_deref()) && self.fits_definition(&candidate)
    }
}

/// Whether the metadata is an object with all of these members, each with the same text.
fn has_members(metadata: &str, wanted: &BTreeMap<String, String>) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let Ok(there) = serde_json::from_str::<BTreeMap<String, &RawValue>>(metadata) else { return false };
    wanted.iter().all(|(name, text)| {
        there.get(name).is_some_and(|value| value.get() == text || JsonText::trusted(value.get()).without_blanks() == *text)
    })
}

#[cfg(test)]
mod tests;
