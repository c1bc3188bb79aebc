//! The columns of a timer's row, as JSON.

use domain::{Attempt, Definition, Span, Status, Timestamp};
use serde::{Deserialize, Serialize};
use store::{RequestColumns, Unreadable};

use crate::{held::Held, json::from_json};

/// What changes often, and what lists filter by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The kind of the callback.
    pub kind: String,
    pub destination: u64,
    /// As a number, because JSON has no bytes.
    pub fingerprint: u128,
    pub execute_at: i64,
    /// When the next attempt is due.
    pub at: i64,
    #[serde(with = "status_text")]
    pub status: Status,
    pub attempt: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    pub revision: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_note: Option<String>,
    /// Its claim: there while it is executing, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// How many attempts were recorded, those that are kept no more included.
    #[serde(default)]
    pub recorded: i64,
    /// The bulk operations that changed it last, the latest at the end: an operation changes each timer once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<u128>,
}

impl Head {
    pub fn wait(&mut self, at: Timestamp, attempt: i64, last_error: Option<String>) {
        self.at = at.as_micros();
        self.attempt = attempt;
        self.last_error = last_error;
    }

    pub fn finish(&mut self, at: Timestamp, last_error: Option<String>) {
        self.executed_at = Some(at.as_micros());
        self.updated_at = at.as_micros();
        self.last_error = last_error;
    }
}

mod status_text {
    use domain::Status;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(status.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Status, D::Error> {
        let text = String::deserialize(deserializer)?;
        Status::parse(&text).ok_or_else(|| D::Error::custom("the status is not known"))
    }
}

/// What its client defined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Body {
    pub asked: i64,
    pub callback: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<String>,
    pub delivery: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
}

impl Body {
    pub fn of(definition: &Definition) -> Self {
        let RequestColumns { asked, options } = RequestColumns::of(definition);
        Self {
            asked,
            callback: definition.callback.to_stored(),
            metadata: definition.metadata.as_ref().map(|metadata| metadata.as_str().to_owned()),
            retry_policy: definition.retry_policy.as_ref().map(domain::RetryPolicy::to_json),
            delivery: definition.delivery.as_str().to_owned(),
            options,
        }
    }
}

/// One entry of its log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredAttempt {
    number: u32,
    started_at: i64,
    took: i64,
    outcome: String,
    status: Option<u16>,
    detail: Option<String>,
    answer: Option<String>,
}

impl StoredAttempt {
    pub fn of(attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            started_at: attempt.started_at.as_micros(),
            took: attempt.took.as_micros(),
            outcome: attempt.outcome.clone(),
            status: attempt.status,
            detail: attempt.detail.clone(),
            answer: attempt.kept_text(),
        }
    }

    pub fn attempt(&self) -> Attempt {
        let attempt = Attempt {
            number: self.number,
            started_at: Timestamp::from_micros(self.started_at),
            took: Span::from_micros_clamped(self.took),
            outcome: self.outcome.clone(),
            status: self.status,
            detail: self.detail.clone(),
            node: None,
            answer: None,
        };
        attempt.with_kept(self.answer.as_deref())
    }
}

pub fn attempts_in(log: &[u8]) -> Result<Vec<StoredAttempt>, Unreadable> {
    if log.is_empty() { Ok(Vec::new()) } else { from_json(log) }
}
