use domain::{
    Callback, Content, CorrelationId, Definition, Delivery, Fingerprint, Group, JsonText, Key, Namespace, NewTimer, OnConflict,
    Options, RequestedTime, RetryPolicy, Status, Timer, TimerId, Times, Timestamp,
};

use crate::Unreadable;

/// A timer as the columns of a database hold it. Every SQL store reads its rows into this, so that all of them
/// understand the same texts in the same way.
#[derive(Debug, Clone)]
pub struct StoredTimer {
    pub id: TimerId,
    pub namespace: String,
    pub key: Option<String>,
    pub asked: i64,
    pub callback_config: String,
    pub metadata: Option<String>,
    pub correlation_id: Option<String>,
    pub retry_policy: Option<String>,
    pub delivery: String,
    pub group: Option<String>,
    /// What no query asks for, see [`Options`].
    pub options: Option<String>,
    pub execute_at: i64,
    pub status: Status,
    pub attempt: i64,
    pub last_error: Option<String>,
    pub executed_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    pub revision: i64,
}

impl StoredTimer {
    /// What a conflict is decided by. Understands no more of the timer than that: one that cannot be read can still be replaced.
    pub fn content(&self, fingerprint: Fingerprint) -> Content {
        let is_event = self.callback_config == Callback::EVENT.to_json();
        Content { fingerprint, asked: RequestedTime::from_i64(self.asked), is_event }
    }

    /// The times by which it is decided when this timer is due next. Understands its options only where the request needs them.
    pub fn times(&self, new: &NewTimer) -> Times {
        let is_postponed = new.on_conflict == OnConflict::Postpone;
        let options = is_postponed.then(|| Options::from_stored(self.options.as_deref()).ok()).flatten();
        let postpone_max = options.and_then(|options| options.postpone_max);
        Times {
            due: Timestamp::from_micros(self.execute_at),
            postponed_until_max: postpone_max.map(|span| Timestamp::from_micros(self.created_at).saturating_add(span)),
            wanted: new.execute_at,
        }
    }

    /// Refuses what no version of this program wrote; says what it was.
    pub fn into_timer(self) -> Result<Timer, Unreadable> {
        let unreadable = |invalid: domain::Invalid| Unreadable(invalid.to_string());
        let definition = Definition {
            id: self.id,
            namespace: Namespace::parse(&self.namespace).map_err(unreadable)?,
            key: self.key.as_deref().map(Key::parse).transpose().map_err(unreadable)?,
            asked: RequestedTime::from_i64(self.asked),
            callback: Callback::from_stored(&self.callback_config).map_err(unreadable)?,
            metadata: self.metadata.map(JsonText::trusted),
            correlation_id: self.correlation_id.as_deref().map(CorrelationId::parse).transpose().map_err(unreadable)?,
            retry_policy: self.retry_policy.as_deref().map(RetryPolicy::from_json).transpose().map_err(unreadable)?,
            delivery: Delivery::parse(&self.delivery).ok_or_else(|| Unreadable("delivery is not known".to_owned()))?,
            group: self.group.as_deref().map(Group::parse).transpose().map_err(unreadable)?,
            options: Options::from_stored(self.options.as_deref()).map_err(unreadable)?,
        };
        Ok(Timer {
            definition,
            execute_at: Timestamp::from_micros(self.execute_at),
            status: self.status,
            attempt: count("attempt", self.attempt)?,
            last_error: self.last_error,
            executed_at: self.executed_at.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(self.created_at),
            updated_at: Timestamp::from_micros(self.updated_at),
            revision: count("revision", self.revision)?,
        })
    }
}

fn count(field: &str, number: i64) -> Result<u32, Unreadable> {
    u32::try_from(number).map_err(|_| Unreadable(format!("{field} is out of range")))
}
