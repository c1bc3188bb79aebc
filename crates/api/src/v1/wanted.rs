//! What a request says about a timer, whether it is new or to be changed.

use commands::{Field, HttpPatch};
use domain::{CallbackUrl, HttpEndpoint, Invalid, RetryPolicy, Span, Timestamp, limits};

use super::{named, policy};
use crate::object::Object;

pub(super) const FIELDS: [&str; 6] =
    ["executeAt", "callbackUrl", "payload", "retryPolicy", "callbackTimeout", "callbackTimeoutSeconds"];

pub(super) struct Wanted {
    pub execute_at: Option<Timestamp>,
    pub http: HttpPatch,
    pub retry_policy: Field<RetryPolicy>,
}

impl Wanted {
    pub(super) fn read(object: &Object<'_>) -> Result<Self, Invalid> {
        let execute_at = object.string("executeAt")?;
        let url = object.string("callbackUrl")?;
        Ok(Self {
            execute_at: execute_at.map(|text| Timestamp::parse("executeAt", &text)).transpose()?,
            http: HttpPatch {
                url: url.map(|text| CallbackUrl::parse(&text).map_err(named("callbackUrl"))).transpose()?,
                payload: object.clearable("payload", |object, name| object.json(name, limits::PAYLOAD_BYTES_MAX))?,
                timeout: timeout(object)?,
            },
            retry_policy: object.clearable("retryPolicy", policy::read)?,
        })
    }
}

/// How long the receiver may take, as a duration or as a number of seconds.
fn timeout(object: &Object<'_>) -> Result<Option<Span>, Invalid> {
    let (name, span) = match (object.string("callbackTimeout")?, object.whole("callbackTimeoutSeconds")?) {
        (Some(_), Some(_)) => {
            return Err(Invalid::new("callbackTimeoutSeconds", "must not be given together with callbackTimeout"));
        }
        (Some(text), None) => ("callbackTimeout", Span::parse("callbackTimeout", &text)?),
        (None, Some(seconds)) => ("callbackTimeoutSeconds", Span::from_secs(seconds)),
        (None, None) => return Ok(None),
    };
    HttpEndpoint::allowed_timeout(span).map(Some).map_err(named(name))
}
