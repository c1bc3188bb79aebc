//! What a request says about a timer, whether it is new or to be changed.

use commands::{Field, HttpPatch};
use domain::{CallbackUrl, Given, HttpEndpoint, Invalid, Json, RetryPolicy, Span, Timestamp, Whole, limits};

use super::policy::Policy;
use crate::request::clearable;

pub(super) type Payload = Json<{ limits::PAYLOAD_BYTES_MAX }>;
pub(super) type Seconds = Whole<0, { u32::MAX }>;

pub(super) struct Wanted {
    pub execute_at: Option<Timestamp>,
    pub http: HttpPatch,
    pub retry_policy: Field<RetryPolicy>,
}

impl Wanted {
    pub(super) fn read<'a>(
        execute_at: &Given<'a, Timestamp>,
        callback_url: &Given<'a, CallbackUrl>,
        payload: &Given<'a, Payload>,
        retry_policy: &Given<'a, Policy>,
        callback_timeout: (&Given<'a, Span>, &Given<'a, Seconds>),
    ) -> Result<Self, Invalid> {
        Ok(Self {
            execute_at: execute_at.read("executeAt")?,
            http: HttpPatch {
                url: callback_url.read("callbackUrl")?,
                payload: clearable(payload, "payload")?,
                timeout: timeout(callback_timeout)?,
            },
            retry_policy: clearable(retry_policy, "retryPolicy")?,
        })
    }
}

/// How long the receiver may take, as a duration or as a number of seconds.
fn timeout((duration, seconds): (&Given<'_, Span>, &Given<'_, Seconds>)) -> Result<Option<Span>, Invalid> {
    if duration.is_given() && seconds.is_given() {
        return Err(Invalid::new("callbackTimeoutSeconds", "must not be given together with callbackTimeout"));
    }
    let (name, span) = match duration.read("callbackTimeout")? {
        Some(span) => ("callbackTimeout", span),
        None => match seconds.read("callbackTimeoutSeconds")? {
            Some(Whole(seconds)) => ("callbackTimeoutSeconds", Span::from_secs(seconds)),
            None => return Ok(None),
        },
    };
    HttpEndpoint::allowed_timeout(span).map(Some).map_err(|invalid| invalid.named(name))
}
