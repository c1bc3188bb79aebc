use domain::{
    Callback, CallbackUrl, CorrelationId, Delivery, Endpoint, Expiry, Group, Invalid, JsonText, Namespace, RequestedTime,
    RetryPolicy, Span, Timer, Timestamp,
};

use crate::{EarliestAllowed, Rules};

/// What an update does to an optional field.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Field<T> {
    /// The field stays as it is.
    #[default]
    Absent,
    /// The field loses its value.
    Clear,
    Set(T),
}

impl<T> Field<T> {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value that is set, if one is.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Clear => None,
        }
    }

    fn put(self, value: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Clear => *value = None,
            Self::Set(new) => *value = Some(new),
        }
    }
}

/// The changes of an update. Fields that are not named stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Patch {
    pub asked: Option<RequestedTime>,
    pub earliest_allowed: EarliestAllowed,
    /// The new callback as a whole.
    pub callback: Option<Callback>,
    /// Or only parts of it, for dialects that do not know callbacks as a whole.
    pub http: HttpPatch,
    pub metadata: Field<JsonText>,
    pub correlation_id: Field<CorrelationId>,
    pub retry_policy: Field<RetryPolicy>,
    pub delivery: Option<Delivery>,
    pub group: Field<Group>,
    pub expiry: Field<Expiry>,
    pub postpone_max: Field<Span>,
    pub on_success: Field<Box<Callback>>,
    pub on_failure: Field<Box<Callback>>,
}

impl Patch {
    pub fn is_empty(&self) -> bool {
        self.asked.is_none()
            && self.callback.is_none()
            && self.http.is_empty()
            && self.metadata.is_absent()
            && self.correlation_id.is_absent()
            && self.retry_policy.is_absent()
            && self.delivery.is_none()
            && self.group.is_absent()
            && self.expiry.is_absent()
            && self.postpone_max.is_absent()
            && self.on_success.is_absent()
            && self.on_failure.is_absent()
    }

    /// The timer with the changes applied, if the rules allow them at `now`. A time that is not named is not checked: an update
    /// of another field may come at the last moment.
    pub fn apply(self, mut timer: Timer, now: Timestamp, rules: &Rules) -> Result<Timer, Invalid> {
        let checks_expiry = self.asked.is_some() || !self.expiry.is_absent();
        if let Some(asked) = &self.asked {
            timer.execute_at = rules.instant(asked, self.earliest_allowed, now)?;
            timer.definition.asked = asked.clone();
        }
        if let Some(callback) = self.callback {
            rules.check(&timer.definition.namespace, &callback)?;
            timer.definition.callback = callback;
        }
        timer.definition.callback = self.http.apply(&timer.definition.namespace, timer.definition.callback, rules)?;
        self.metadata.put(&mut timer.definition.metadata);
        self.correlation_id.put(&mut timer.definition.correlation_id);
        self.retry_policy.put(&mut timer.definition.retry_policy);
        if let Some(delivery) = self.delivery {
            timer.definition.delivery = delivery;
        }
        self.group.put(&mut timer.definition.group);
        self.expiry.put(&mut timer.definition.options.expiry);
        self.postpone_max.put(&mut timer.definition.options.postpone_max);
        let tells = !self.on_success.is_absent() || !self.on_failure.is_absent();
        self.on_success.put(&mut timer.definition.options.on_success);
        self.on_failure.put(&mut timer.definition.options.on_failure);
        if tells {
            rules.check_follow_ups(&timer.definition.namespace, &timer.definition.options)?;
        }
        if let Some(expiry) = timer.definition.options.expiry.filter(|_| checks_expiry) {
            expiry.check(timer.execute_at)?;
        }
        Ok(timer)
    }
}

/// The changes of an HTTP callback. Its headers and its protocol stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpPatch {
    pub url: Option<CallbackUrl>,
    pub payload: Field<JsonText>,
    pub timeout: Option<Span>,
}

impl HttpPatch {
    fn is_empty(&self) -> bool {
        self.first_named().is_none()
    }

    fn first_named(&self) -> Option<&'static str> {
        let named = [
            ("callback.url", self.url.is_some()),
            ("callback.payload", !self.payload.is_absent()),
            ("callback.timeout", self.timeout.is_some()),
        ];
        named.into_iter().find_map(|(field, is_named)| is_named.then_some(field))
    }

    fn apply(self, namespace: &Namespace, mut callback: Callback, rules: &Rules) -> Result<Callback, Invalid> {
        let Some(field) = self.first_named() else { return Ok(callback) };
        let Endpoint::Http(http) = &mut callback.endpoint else {
            return Err(Invalid::new(field, "cannot be changed: the timer does not call a URL"));
        };
        self.payload.put(&mut callback.payload);
        http.timeout = self.timeout.unwrap_or(http.timeout);
        let Some(url) = self.url else { return Ok(callback) };
        http.url = url;
        rules.check(namespace, &callback)?;
        Ok(callback)
    }
}

#[cfg(test)]
mod tests;
