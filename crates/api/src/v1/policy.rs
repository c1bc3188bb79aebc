//! Retry policies in the words of this dialect.

use domain::{FromMember, Given, Invalid, RetryPolicy, Span, Whole, limits, read_object_in};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::duration;

/// How often and when a failed call is made again. Without one it is made once. Intervals are jittered by ±10 %.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
#[schema(as = V1RetryPolicy)]
pub(super) struct PolicyRequest<'a> {
    /// 3 unless given.
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 1000, example = 3)]
    #[serde(default)]
    max_retries: Given<'a, Whole<0, { limits::RETRIES_MAX }>>,
    /// The pause after the first failure; 30s unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "30s")]
    #[serde(default)]
    initial_interval: Given<'a, Span>,
    /// By how much each pause is longer than the one before; 2 unless given.
    #[schema(value_type = f64, required = false, minimum = 1, maximum = 100, example = 2.0)]
    #[serde(default)]
    backoff_multiplier: Given<'a, Multiplier>,
    /// The longest pause; 10m unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "10m")]
    #[serde(default)]
    max_interval: Given<'a, Span>,
    /// No attempt starts later than this after the timer was due, or was last changed or tried again by its client; no such limit
    /// unless given.
    #[schema(value_type = String, required = false, pattern = r"^(P.+|([0-9]+(\.[0-9]{1,9})?(us|ms|s|m|min|h|d|w))+)$", example = "24h")]
    #[serde(default)]
    max_retry_attempts_duration: Given<'a, Span>,
}

/// A policy that is read in the words of this dialect. What it does not say is as usual.
pub(super) struct Policy(RetryPolicy);

impl FromMember<'_> for Policy {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let request: PolicyRequest<'_> = read_object_in(name, raw.get())?;
        request.into_policy().map(Self).map_err(|invalid| invalid.within(name))
    }
}

impl From<Policy> for RetryPolicy {
    fn from(Policy(policy): Policy) -> Self {
        policy
    }
}

impl PolicyRequest<'_> {
    fn into_policy(self) -> Result<RetryPolicy, Invalid> {
        let usual = RetryPolicy::default();
        let policy = RetryPolicy {
            max_retries: self.max_retries.read("maxRetries")?.map_or(usual.max_retries, |Whole(retries)| retries),
            initial_interval: self.initial_interval.read("initialInterval")?.unwrap_or(usual.initial_interval),
            backoff_multiplier: self
                .backoff_multiplier
                .read("backoffMultiplier")?
                .map_or(usual.backoff_multiplier, |Multiplier(number)| number),
            max_interval: self.max_interval.read("maxInterval")?.unwrap_or(usual.max_interval),
            max_duration: self.max_retry_attempts_duration.read("maxRetryAttemptsDuration")?,
        };
        policy.checked().map_err(|invalid| {
            let name = match invalid.field.as_str() {
                "max_retries" => "maxRetries",
                "initial_interval" => "initialInterval",
                "backoff_multiplier" => "backoffMultiplier",
                "max_interval" => "maxInterval",
                _ => "maxRetryAttemptsDuration",
            };
            invalid.named(name)
        })
    }
}

/// Any number: whether it is in range is seen when the policy is whole.
pub(super) struct Multiplier(f64);

impl FromMember<'_> for Multiplier {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        serde_json::from_str(raw.get()).map(Self).map_err(|_| Invalid::new(name, RetryPolicy::multiplier_rule()))
    }
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
            initial_interval: duration::written(policy.initial_interval),
            backoff_multiplier: policy.backoff_multiplier,
            max_interval: duration::written(policy.max_interval),
            max_retry_attempts_duration: policy.max_duration.map(duration::written),
        }
    }
}
