use domain::{
    Callback, Content, CorrelationId, Definition, Delivery, Fingerprint, Group, Invalid, JsonText, Key, Namespace, NewTimer,
    Options, Pause, RequestedTime, RetryPolicy, Status, StoredTime, Timer, TimerId, Times, Timestamp,
};

use crate::Unreadable;

/// The columns `asked` and `options` of a definition. They are made and understood together, and here alone: a requested time that is more
/// than a number has its text among the options. Stores pass both through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestColumns {
    pub asked: i64,
    pub options: Option<String>,
}

impl RequestColumns {
    pub fn of(definition: &Definition) -> Self {
        Self::new(definition.asked.to_stored(), &definition.options)
    }

    fn new(StoredTime { number, text }: StoredTime, options: &Options) -> Self {
        Self { asked: number, options: options.to_stored(text) }
    }
}

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
    /// There while it is paused.
    pub paused_at: Option<i64>,
    pub pause_note: Option<String>,
}

impl StoredTimer {
    /// What a conflict is decided by. Understands no more of the timer than that: one that cannot be read can still be replaced.
    pub fn content(&self, fingerprint: Fingerprint) -> Content {
        // The fingerprint that is stored without a key says nothing of the content.
        if self.key.is_none()
            && let Ok(timer) = self.clone().into_timer()
        {
            return timer.definition.content_with(fingerprint);
        }
        let is_event = self.callback_config == Callback::EVENT.to_stored();
        Content { fingerprint, asked: self.request().ok().map(|(asked, _)| asked), is_event, is_keyed: self.key.is_some() }
    }

    /// The columns of this timer when only its time changes.
    pub fn moved_to(&self, asked: &RequestedTime) -> Result<RequestColumns, Unreadable> {
        let (asked, (options, text)) = (asked.to_stored(), self.options()?);
        // Members that only a later version knows stay, unless the text of a time is among them.
        let is_kept = asked.text.is_none() && text.is_none();
        let kept = || RequestColumns { asked: asked.number, options: self.options.clone() };
        Ok(if is_kept { kept() } else { RequestColumns::new(asked, &options) })
    }

    fn request(&self) -> Result<(RequestedTime, Options), Unreadable> {
        let (options, text) = self.options()?;
        let asked = RequestedTime::from_stored(&StoredTime { number: self.asked, text }).map_err(unreadable)?;
        Ok((asked, options))
    }

    fn options(&self) -> Result<(Options, Option<String>), Unreadable> {
        Options::from_stored(self.options.as_deref()).map_err(unreadable)
    }

    /// The times by which it is decided when this timer is due next. Understands its options only where the request needs them.
    pub fn times(&self, new: &NewTimer) -> Times {
        let is_moved = new.on_conflict.only_moves();
        let options = is_moved.then(|| self.options().ok()).flatten().map(|(options, _)| options).unwrap_or_default();
        Times {
            due: Timestamp::from_micros(self.execute_at),
            postponed_until_max: options.postpone_max.map(|span| Timestamp::from_micros(self.created_at).saturating_add(span)),
            expiry: options.expiry,
            wanted: new.execute_at,
        }
    }

    /// Refuses what no version of this program wrote; says what it was.
    pub fn into_timer(self) -> Result<Timer, Unreadable> {
        let (asked, options) = self.request()?;
        let definition = Definition {
            id: self.id,
            namespace: Namespace::parse(&self.namespace).map_err(unreadable)?,
            key: self.key.as_deref().map(Key::parse).transpose().map_err(unreadable)?,
            asked,
            callback: Callback::from_stored(&self.callback_config).map_err(unreadable)?,
            metadata: self.metadata.map(JsonText::trusted),
            correlation_id: self.correlation_id.as_deref().map(CorrelationId::parse).transpose().map_err(unreadable)?,
            retry_policy: self.retry_policy.as_deref().map(RetryPolicy::from_json).transpose().map_err(unreadable)?,
            delivery: Delivery::parse(&self.delivery).ok_or_else(|| Unreadable("delivery is not known".to_owned()))?,
            group: self.group.as_deref().map(Group::parse).transpose().map_err(unreadable)?,
            options,
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
            pause: self.paused_at.map(|at| Pause { at: Timestamp::from_micros(at), note: self.pause_note }),
        })
    }
}

fn unreadable(invalid: Invalid) -> Unreadable {
    Unreadable(invalid.to_string())
}

fn count(field: &str, number: i64) -> Result<u32, Unreadable> {
    u32::try_from(number).map_err(|_| Unreadable(format!("{field} is out of range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(asked: i64, options: Option<&str>) -> StoredTimer {
        StoredTimer {
            id: TimerId::parse("id", "0190163d-8694-739b-aea5-966c26f8ad91").unwrap(),
            namespace: "default".to_owned(),
            key: None,
            asked,
            callback_config: Callback::EVENT.to_stored(),
            metadata: None,
            correlation_id: None,
            retry_policy: None,
            delivery: Delivery::AtLeastOnce.as_str().to_owned(),
            group: None,
            options: options.map(str::to_owned),
            execute_at: 0,
            status: Status::Pending,
            attempt: 0,
            last_error: None,
            executed_at: None,
            created_at: 0,
            updated_at: 0,
            revision: 1,
            paused_at: None,
            pause_note: None,
        }
    }

    const LATER: &str = r#"{"version":1,"asked":"0 9 * * MON","colour":"red"}"#;
    const UNKNOWN: &str = r#"{"version":1,"colour":"red"}"#;
    const AT: RequestedTime = RequestedTime::At(Timestamp::from_micros(7));

    #[test]
    fn what_was_asked_is_read_back() {
        let timer = stored(7, None).into_timer().unwrap();
        assert_eq!(timer.definition.asked, AT);
        assert_eq!(RequestColumns::of(&timer.definition), RequestColumns { asked: 7, options: None });
    }

    #[test]
    fn a_time_of_a_later_version_is_refused_and_equals_no_other() {
        let refusal = stored(7, Some(LATER)).into_timer().unwrap_err();
        assert_eq!(refusal, Unreadable("asked is of a kind that this program does not know".to_owned()));
        assert_eq!(stored(7, Some(LATER)).content(Fingerprint([0; 16])).asked, None);
        assert_eq!(stored(7, Some(UNKNOWN)).content(Fingerprint([0; 16])).asked, Some(AT));
    }

    #[test]
    fn a_new_time_replaces_the_text_of_the_old_one_and_leaves_other_options() {
        for (before, after) in [(None, None), (Some(UNKNOWN), Some(UNKNOWN)), (Some(LATER), None)] {
            let columns = RequestColumns { asked: 7, options: after.map(str::to_owned) };
            assert_eq!(stored(3, before).moved_to(&AT), Ok(columns), "{before:?}");
        }
    }
}
