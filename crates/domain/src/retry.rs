use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Invalid, Span, limits, read_object_in, string_in};

/// How often and when a failed call is made again. Without one it is made once. Intervals are jittered by ±10 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// 3 unless given.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 1000, example = 5)]
    pub max_retries: u32,
    /// The pause after the first failure; 30s unless given.
    #[schema(value_type = Option<String>, example = "10s")]
    pub initial_interval: Span,
    /// By how much each pause is longer than the one before; 2 unless given.
    #[schema(value_type = Option<f64>, minimum = 1, maximum = 100, example = 2.0)]
    pub backoff_multiplier: f64,
    /// The longest pause; 10m unless given.
    #[schema(value_type = Option<String>, example = "10m")]
    pub max_interval: Span,
    /// No attempt starts later than this after the timer was due, or was last changed or tried again by its client; no such limit
    /// unless given.
    #[schema(value_type = Option<String>, example = "1d")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<Span>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_interval: Span::from_secs(30),
            backoff_multiplier: 2.0,
            max_interval: Span::from_secs(600),
            max_duration: None,
        }
    }
}

/// The members may have any type, so that an error can name its field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    max_retries: Option<&'a RawValue>,
    #[serde(borrow)]
    initial_interval: Option<&'a RawValue>,
    #[serde(borrow)]
    backoff_multiplier: Option<&'a RawValue>,
    #[serde(borrow)]
    max_interval: Option<&'a RawValue>,
    #[serde(borrow)]
    max_duration: Option<&'a RawValue>,
}

impl Fields<'_> {
    fn max_retries(&self) -> Result<Option<u32>, Invalid> {
        let whole = |raw: &RawValue| match serde_json::from_str::<f64>(raw.get()) {
            // The cast is exact: the number was just checked to be whole and in range.
            Ok(number) if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) => Ok(number as u32),
            _ => Err(Invalid::new("max_retries", RetryPolicy::retries_rule())),
        };
        self.max_retries.map(whole).transpose()
    }

    fn backoff_multiplier(&self) -> Result<Option<f64>, Invalid> {
        let number = |raw: &RawValue| {
            serde_json::from_str(raw.get()).map_err(|_| Invalid::new("backoff_multiplier", RetryPolicy::multiplier_rule()))
        };
        self.backoff_multiplier.map(number).transpose()
    }

    fn span(field: &str, raw: Option<&RawValue>) -> Result<Option<Span>, Invalid> {
        let span = |raw| Span::parse(field, &string_in(raw).ok_or_else(|| Invalid::new(field, "must be a string"))?);
        raw.map(span).transpose()
    }
}

impl RetryPolicy {
    /// Retries without end, at most some seconds apart.
    pub const FOR_EVER: Self = Self {
        max_retries: u32::MAX,
        initial_interval: Span::from_millis(500),
        backoff_multiplier: 2.0,
        max_interval: Span::from_secs(15),
        max_duration: None,
    };

    pub fn to_json(&self) -> String {
        // Numbers and durations only, so serializing cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Result<Self, Invalid> {
        let fields: Fields<'_> = read_object_in("retry_policy", text)?;
        Self::parse(&fields).map_err(|invalid| invalid.within("retry_policy"))
    }

    fn parse(fields: &Fields<'_>) -> Result<Self, Invalid> {
        let defaults = Self::default();
        Self {
            max_retries: fields.max_retries()?.unwrap_or(defaults.max_retries),
            initial_interval: Fields::span("initial_interval", fields.initial_interval)?.unwrap_or(defaults.initial_interval),
            backoff_multiplier: fields.backoff_multiplier()?.unwrap_or(defaults.backoff_multiplier),
            max_interval: Fields::span("max_interval", fields.max_interval)?.unwrap_or(defaults.max_interval),
            max_duration: Fields::span("max_duration", fields.max_duration)?,
        }
        .checked()
    }

    /// The rule for a number of retries.
    pub fn retries_rule() -> String {
        format!("must be a whole number from 0 to {}", limits::RETRIES_MAX)
    }

    /// The rule for a multiplier.
    pub fn multiplier_rule() -> String {
        format!("must be a number from 1 to {}", limits::BACKOFF_MULTIPLIER_MAX)
    }

    /// The policy, if a client may ask for it. Complaints name its fields as they are called here.
    pub fn checked(self) -> Result<Self, Invalid> {
        if self.max_retries > limits::RETRIES_MAX {
            return Err(Invalid::new("max_retries", Self::retries_rule()));
        }
        if !(1.0..=limits::BACKOFF_MULTIPLIER_MAX).contains(&self.backoff_multiplier) {
            return Err(Invalid::new("backoff_multiplier", Self::multiplier_rule()));
        }
        for (field, span) in [("initial_interval", self.initial_interval), ("max_interval", self.max_interval)] {
            if span < Span::from_millis(1) {
                return Err(Invalid::new(field, "must be at least 1ms"));
            }
        }
        Ok(self)
    }

    /// How long to wait after the attempt with this number (1 for the first) failed, before jitter.
    pub fn interval_after(&self, attempt: u32) -> Span {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        self.initial_interval.saturating_mul(self.backoff_multiplier.powi(exponent)).min(self.max_interval)
    }
}

#[cfg(test)]
mod tests {
    use utoipa::{
        PartialSchema,
        openapi::{RefOr, Schema, schema::AdditionalProperties},
    };

    use super::*;
    use crate::names_of;

    #[test]
    fn what_is_described_is_what_is_read() {
        let RefOr::T(Schema::Object(described)) = RetryPolicy::schema() else { panic!("not an object") };
        assert_eq!(described.properties.keys().collect::<Vec<_>>(), names_of::<Fields<'_>>());
        assert!(matches!(described.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false))));
    }

    #[test]
    fn a_policy_reads_back_as_it_was_written() {
        let json =
            r#"{"max_retries":5,"initial_interval":"1s","backoff_multiplier":1.5,"max_interval":"1m","max_duration":"1h"}"#;
        assert_eq!(RetryPolicy::from_json(json).unwrap().to_json(), json);
        assert_eq!(RetryPolicy::from_json("{}").unwrap(), RetryPolicy::default());
    }

    #[test]
    fn intervals_grow_up_to_the_cap() {
        let policy =
            RetryPolicy { initial_interval: Span::from_secs(1), max_interval: Span::from_secs(10), ..RetryPolicy::default() };
        let seconds: Vec<_> = [1, 2, 3, 4, 5, 1000, u32::MAX].map(|attempt| policy.interval_after(attempt).as_secs_up()).into();
        assert_eq!(seconds, [1, 2, 4, 8, 10, 10, 10]);
    }

    #[test]
    fn bad_policies_are_refused_with_field_and_rule() {
        for (json, start) in [
            ("3", "retry_policy must be an object"),
            (r#"{"max_retry":3}"#, "retry_policy.'max_retry' is not a known field"),
            (r#"{"max_retries":-1}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":1001}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":1.5}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":"3"}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":1e99}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":[]}"#, "retry_policy.max_retries must be a whole number from 0 to 1000"),
            (r#"{"max_retries":1,"max_retries":1}"#, "retry_policy.max_retries must not be given twice"),
            (r#"{"backoff_multiplier":0.5}"#, "retry_policy.backoff_multiplier must be a number from 1 to 100"),
            (r#"{"backoff_multiplier":"2"}"#, "retry_policy.backoff_multiplier must be a number from 1 to 100"),
            (r#"{"initial_interval":5}"#, "retry_policy.initial_interval must be a string"),
            (r#"{"max_duration":{}}"#, "retry_policy.max_duration must be a string"),
            (r#"{"initial_interval":"0s"}"#, "retry_policy.initial_interval must be at least 1ms"),
            (r#"{"max_interval":"x"}"#, "retry_policy.max_interval must be a duration"),
        ] {
            let complaint = RetryPolicy::from_json(json).unwrap_err().to_string();
            assert!(complaint.starts_with(start), "{json}: {complaint}");
        }
    }
}
