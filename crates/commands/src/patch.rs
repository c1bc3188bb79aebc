use domain::{Asked, Callback, CorrelationId, Delivery, Invalid, JsonText, RetryPolicy, Timer, Timestamp};

use crate::{Rules, Soonest};

/// What an update says about a field that can be without a value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Field<T> {
    /// Nothing: it stays as it is.
    #[default]
    Absent,
    /// It is to be without a value.
    Clear,
    Set(T),
}

impl<T> Field<T> {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    fn put(self, place: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Clear => *place = None,
            Self::Set(value) => *place = Some(value),
        }
    }
}

/// The changes of an update. What is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Patch {
    pub asked: Option<Asked>,
    pub soonest: Soonest,
    pub callback: Option<Callback>,
    pub metadata: Field<JsonText>,
    pub correlation_id: Field<CorrelationId>,
    pub retry_policy: Field<RetryPolicy>,
    pub delivery: Option<Delivery>,
}

impl Patch {
    pub fn is_empty(&self) -> bool {
        self.asked.is_none()
            && self.callback.is_none()
            && self.metadata.is_absent()
            && self.correlation_id.is_absent()
            && self.retry_policy.is_absent()
            && self.delivery.is_none()
    }

    /// The timer with the changes made, if the rules allow them at `now`. A time that is not named is not checked:
    /// an update of something else may come at the last moment.
    pub fn apply(self, mut timer: Timer, now: Timestamp, rules: &Rules) -> Result<Timer, Invalid> {
        if let Some(asked) = self.asked {
            timer.execute_at = rules.instant(asked, self.soonest, now)?;
            timer.definition.asked = asked;
        }
        if let Some(callback) = self.callback {
            rules.check(&callback)?;
            timer.definition.callback = callback;
        }
        self.metadata.put(&mut timer.definition.metadata);
        self.correlation_id.put(&mut timer.definition.correlation_id);
        self.retry_policy.put(&mut timer.definition.retry_policy);
        if let Some(delivery) = self.delivery {
            timer.definition.delivery = delivery;
        }
        Ok(timer)
    }
}

#[cfg(test)]
mod tests;
