use std::fmt::Write;

use uuid::fmt::Simple;

use crate::{
    Callback, Content, CorrelationId, Fingerprint, Group, JsonText, Key, Namespace, OnConflict, Options, RequestedTime,
    RetryPolicy, Span, Status, TimerId, Timestamp,
};

/// What a client registered. It changes only when the client changes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub id: TimerId,
    pub namespace: Namespace,
    pub key: Option<Key>,
    pub asked: RequestedTime,
    pub callback: Callback,
    pub metadata: Option<JsonText>,
    pub correlation_id: Option<CorrelationId>,
    pub retry_policy: Option<RetryPolicy>,
    pub delivery: Delivery,
    /// What it belongs to: timers of a group are counted and canceled together.
    pub group: Option<Group>,
    pub options: Options,
}

impl Definition {
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }

    /// The properties by which a conflict is decided.
    pub fn content(&self) -> Content {
        self.content_with(self.fingerprint())
    }

    /// The same, for a store that has the fingerprint already.
    pub fn content_with(&self, stored: Fingerprint) -> Content {
        let fingerprint = if self.key.is_some() { stored } else { Fingerprint::of_content(self) };
        Content { fingerprint, asked: Some(self.asked.clone()), is_event: self.callback.is_event(), is_keyed: self.key.is_some() }
    }

    /// How a failed call is tried again: as the caller said, or as its kind of callback is tried by itself.
    pub fn retries(&self) -> Option<RetryPolicy> {
        self.retry_policy.or(self.callback.retries())
    }
}

/// Whether a call is repeated when a crash leaves open if it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(
    description = "A crash can leave open whether a call was made. `at_least_once` makes it again; `at_most_once` lets the timer fail instead."
)]
pub enum Delivery {
    /// The call is made again.
    #[default]
    AtLeastOnce,
    /// The call counts as failed.
    AtMostOnce,
}

impl Delivery {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at_least_once",
            Self::AtMostOnce => "at_most_once",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::AtLeastOnce, Self::AtMostOnce].into_iter().find(|delivery| delivery.as_str() == text)
    }
}

/// A timer that is about to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTimer {
    pub definition: Definition,
    pub execute_at: Timestamp,
    pub on_conflict: OnConflict,
    pub created_at: Timestamp,
}

/// A timer as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    pub definition: Definition,
    /// When the timer is due. Retries do not move it.
    pub execute_at: Timestamp,
    pub status: Status,
    /// How many deliveries have been started for this due time.
    pub attempt: u32,
    pub last_error: Option<String>,
    pub executed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Rises with every change of the definition or the due time, with a pause and a resume; an update names the one that it was made from.
    pub revision: u32,
    /// There while it is paused, and only then.
    pub pause: Option<Pause>,
}

/// Since when a timer is paused, and what its client noted about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub at: Timestamp,
    pub note: Option<String>,
}

/// What becomes of a resumed timer whose next attempt was due while it was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// The attempt is due at once.
    #[default]
    Fire,
    /// The timer ends as expired.
    Expire,
}

impl Missed {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "fire" => Some(Self::Fire),
            "expire" => Some(Self::Expire),
            _ => None,
        }
    }
}

impl Timer {
    pub const fn id(&self) -> TimerId {
        self.definition.id
    }

    /// From when on no attempt is started any more.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.definition.options.expiry.map(|expiry| expiry.instant(self.execute_at))
    }

    /// When a timer is looked at next whose next attempt was planned for then. No retry is made at or after the expiry, so that it is not
    /// waited for any longer than until that.
    pub fn next_look(&self, planned: Timestamp) -> Timestamp {
        match self.expires_at() {
            Some(expires_at) if planned > self.execute_at => planned.min(expires_at),
            _ => planned,
        }
    }

    pub fn time_left(&self, now: Timestamp) -> Span {
        self.execute_at.since(now)
    }

    /// The same for every attempt of one due time, so that a receiver can tell a repetition from a new call (idempotency key).
    pub fn webhook_id(&self) -> String {
        let mut id = self.definition.id.as_uuid().simple().encode_lower(&mut [0; Simple::LENGTH]).to_owned();
        // Writing to a string cannot fail.
        let _ = write!(id, "_{:x}", self.execute_at.as_micros());
        id
    }
}
