use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{Callback, Error, Instant, Json, RetryPolicy, wire};

/// Where a timer stands. Later versions of the service may know more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    Pending,
    Executing,
    Completed,
    Failed,
    Canceled,
    Paused,
    Expired,
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Whether no call follows unless the timer is changed.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Expired)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Paused => "paused",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        })
    }
}

/// A timer, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timer {
    pub id: String,
    pub namespace: String,
    pub key: Option<String>,
    pub group: Option<String>,
    pub status: Status,
    pub callback_type: String,
    #[serde(with = "wire::instant")]
    pub execute_at: Instant,
    /// Whole seconds until it is due.
    pub time_left: i64,
    #[serde(with = "wire::some_instant")]
    pub executed_at: Option<Instant>,
    #[serde(with = "wire::instant")]
    pub created_at: Instant,
    #[serde(with = "wire::instant")]
    pub updated_at: Instant,
    pub revision: u32,
}

/// A timer with everything that is known about it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TimerDetail {
    pub timer: Timer,
    pub more: Detail,
}

/// What lists do not show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Detail {
    /// With its payload, exactly as it was given.
    pub callback_config: Json,
    #[serde(default)]
    pub metadata: Option<Json>,
    pub correlation_id: Option<String>,
    pub retry_policy: Option<RetryPolicy>,
    pub delivery: String,
    #[serde(default, with = "wire::some_instant")]
    pub expires_at: Option<Instant>,
    pub expires_after: Option<String>,
    pub postpone_max: Option<String>,
    pub on_success: Option<Json>,
    pub on_failure: Option<Json>,
    pub attempt: u32,
    pub last_error: Option<String>,
    #[serde(default, with = "wire::some_instant")]
    pub paused_at: Option<Instant>,
    pub pause_note: Option<String>,
}

impl TimerDetail {
    /// Exact texts cannot be read through a flattened struct, so that the text is read twice.
    pub(crate) fn of(data: &Json) -> Result<Self, Error> {
        Ok(Self { timer: data.parse()?, more: data.parse()? })
    }

    /// The payload, exactly as it was given.
    pub fn payload(&self) -> Option<Json> {
        self.callback().ok()?.payload
    }

    /// What is called.
    pub fn callback(&self) -> Result<Callback, Error> {
        self.more.callback_config.parse()
    }
}

/// One delivery of a timer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    pub number: u32,
    #[serde(with = "wire::instant")]
    pub started_at: Instant,
    pub took_ms: i64,
    pub outcome: String,
    pub status: Option<u16>,
    pub detail: Option<String>,
    /// The name of the node that made it; `None` where it is not known.
    #[serde(default)]
    pub node: Option<String>,
    pub answer: Option<AttemptAnswer>,
}

/// How the answer of a receiver began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptAnswer {
    pub headers: BTreeMap<String, String>,
    pub body: Option<String>,
    /// A body that is not text.
    #[serde(default)]
    pub body_base64: Option<String>,
}
