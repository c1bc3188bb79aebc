use std::time::Duration;

use crate::{Callback, Error, Instant, Json, RetryPolicy, duration, wire};

/// A change of a pending or paused timer. What is not said stays as it is.
///
/// ```
/// # use std::time::Duration;
/// use client::Update;
///
/// let later = Update::new().after(Duration::from_secs(7200)).clear("group");
/// assert_eq!(later.body().as_str(), r#"{"delay":"2h","group":null}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update(Vec<(&'static str, Json)>);

impl Update {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the timer due after this delay from now.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        self.text("delay", &duration(delay))
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(self, at: Instant) -> Self {
        self.text("execute_at", &wire::text(at))
    }

    /// Another callback as a whole.
    pub fn callback(self, callback: &Callback) -> Result<Self, Error> {
        Ok(self.with("callback", Json::of(callback)?))
    }

    pub fn on_success(self, callback: &Callback) -> Result<Self, Error> {
        Ok(self.with("on_success", Json::of(callback)?))
    }

    pub fn on_failure(self, callback: &Callback) -> Result<Self, Error> {
        Ok(self.with("on_failure", Json::of(callback)?))
    }

    pub fn retry_policy(self, policy: &RetryPolicy) -> Result<Self, Error> {
        Ok(self.with("retry_policy", Json::of(policy)?))
    }

    #[must_use]
    pub fn metadata(self, metadata: Json) -> Self {
        self.with("metadata", metadata)
    }

    #[must_use]
    pub fn group(self, group: &str) -> Self {
        self.text("group", group)
    }

    #[must_use]
    pub fn correlation_id(self, id: &str) -> Self {
        self.text("correlation_id", id)
    }

    /// `at_least_once` or `at_most_once`.
    #[must_use]
    pub fn delivery(self, delivery: &str) -> Self {
        self.text("delivery", delivery)
    }

    /// No attempt starts at or after this instant.
    #[must_use]
    pub fn expires(self, at: Instant) -> Self {
        self.text("expires_at", &wire::text(at))
    }

    #[must_use]
    pub fn expires_after(self, time: Duration) -> Self {
        self.text("expires_after", &duration(time))
    }

    #[must_use]
    pub fn postpone_max(self, time: Duration) -> Self {
        self.text("postpone_max", &duration(time))
    }

    /// Takes a member away, such as `group` or `metadata`.
    #[must_use]
    pub fn clear(self, member: &'static str) -> Self {
        self.with(member, Json::null())
    }

    /// Any member of the request, in place of an earlier one of that name.
    #[must_use]
    pub fn with(mut self, member: &'static str, value: Json) -> Self {
        self.0.retain(|(known, _)| *known != member);
        self.0.push((member, value));
        self
    }

    fn text(self, member: &'static str, text: &str) -> Self {
        self.with(member, Json::string(text))
    }

    /// The body of the request.
    pub fn body(&self) -> Json {
        Json::object(self.0.iter().map(|(member, value)| (*member, value)))
    }
}
