//! Retry policies in the words of this dialect.

use domain::{Invalid, RetryPolicy, Span, limits};
use serde::Serialize;
use utoipa::ToSchema;

use super::view;
use crate::object::Object;

/// What each field is called here, and behind the dialects.
pub(super) const FIELDS: [(&str, &str); 5] = [
    ("maxRetries", "max_retries"),
    ("initialInterval", "initial_interval"),
    ("backoffMultiplier", "backoff_multiplier"),
    ("maxInterval", "max_interval"),
    ("maxRetryAttemptsDuration", "max_duration"),
];

/// The policy that is the member `name`. What it does not say is as usual.
pub(super) fn read(object: &Object<'_>, name: &str) -> Result<Option<RetryPolicy>, Invalid> {
    let Some(members) = object.object(name, &FIELDS.map(|(here, _)| here))? else { return Ok(None) };
    parse(&members).map(Some).map_err(|invalid| invalid.within(name))
}

fn parse(members: &Object<'_>) -> Result<RetryPolicy, Invalid> {
    let span = |name: &str| members.string(name)?.map(|text| Span::parse(name, &text)).transpose();
    let usual = RetryPolicy::default();
    let policy = RetryPolicy {
        max_retries: members.whole_in("maxRetries", 0..=limits::RETRIES_MAX)?.unwrap_or(usual.max_retries),
        initial_interval: span("initialInterval")?.unwrap_or(usual.initial_interval),
        backoff_multiplier: members
            .number("backoffMultiplier", RetryPolicy::multiplier_rule)?
            .unwrap_or(usual.backoff_multiplier),
        max_interval: span("maxInterval")?.unwrap_or(usual.max_interval),
        max_duration: span("maxRetryAttemptsDuration")?,
    };
    policy.checked().map_err(|Invalid { field, rule }| {
        let here = FIELDS.iter().find(|(_, behind)| *behind == field).map_or(field.as_str(), |(here, _)| here);
        Invalid::new(here, rule)
    })
}

/// How often and when a failed call is made again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = V1RetryPolicyOfTimer)]
pub(super) struct PolicyView {
    #[schema(minimum = 0, example = 3)]
    max_retries: u32,
    #[schema(example = "30s")]
    initial_interval: String,
    #[schema(minimum = 1, maximum = 100, example = 2.0)]
    backoff_multiplier: f64,
    #[schema(example = "10m")]
    max_interval: String,
    /// `null` when there is no such limit.
    #[schema(required = true, example = "24h")]
    max_retry_attempts_duration: Option<String>,
}

impl PolicyView {
    pub(super) fn of(policy: &RetryPolicy) -> Self {
        Self {
            max_retries: policy.max_retries,
            initial_interval: view::duration(policy.initial_interval),
            backoff_multiplier: policy.backoff_multiplier,
            max_interval: view::duration(policy.max_interval),
            max_retry_attempts_duration: policy.max_duration.map(view::duration),
        }
    }
}
