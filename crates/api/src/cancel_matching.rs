//! `POST /timers/cancel`: cancels every pending timer that matches.

use std::borrow::Cow;

use commands::{CanceledMany, Filter, Members, Selection};
use domain::{Invalid, Key, Namespace, Status, limits};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    object::Object,
    schema,
};

pub(crate) const CONDITIONS: [&str; 4] = ["namespace", "status", "key_prefix", "metadata"];
pub(crate) const GUARD: &str = "expected_max";

/// How many timers were canceled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CanceledTimers)]
pub(crate) struct CanceledView {
    /// How many matched.
    #[schema(minimum = 0, example = 3)]
    matched: usize,
    /// How many of them were canceled; the others were no longer pending when it came to that.
    #[schema(minimum = 0, example = 3)]
    canceled: usize,
}

impl From<CanceledMany> for CanceledView {
    fn from(CanceledMany { matched, canceled }: CanceledMany) -> Self {
        Self { matched, canceled }
    }
}

/// Cancel many timers
///
/// Cancels every pending timer for which all the conditions hold, of which at least one must be given. If more match than
/// `expected_max`, none of them is canceled. Timers that are registered meanwhile may be left alone. Repeating it is safe.
#[utoipa::path(
    post, path = "/timers/cancel", tag = "timers", operation_id = "cancelTimers", security(("ApiKey" = [])),
    request_body(content = schema::CancelTimers, description = "Which timers are meant, and how many are expected.",
        example = json!({"namespace": "default", "key_prefix": "order-456-", "metadata": {"owner": "ada"}, "expected_max": 10})),
    responses(
        (status = 200, description = "They are canceled, perhaps none: `timers canceled successfully`.", body = Envelope<CanceledView>),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "More timers match than `expected_max`, and none was canceled.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn cancel_matching(Writing(commands): Writing, body: JsonBody) -> Result<Answer<CanceledView>, ApiError> {
    let selection = parse(&body.text)?;
    let canceled = commands.cancel_matching(&selection).await?;
    Ok(Answer::ok("timers canceled successfully", canceled.into()))
}

fn parse(text: &str) -> Result<Selection, ApiError> {
    let object = Object::parse(text, &[CONDITIONS.as_slice(), &[GUARD]].concat())?;
    let expected_max =
        object.whole_in(GUARD, 1..=limits::CANCELED_AT_ONCE_MAX as u32)?.ok_or_else(|| Invalid::new(GUARD, "is required"))?;
    if object.first_of(&CONDITIONS).is_none() {
        return Err(Invalid::new(CONDITIONS.join(", "), "must not all be missing: say which timers are meant").into());
    }
    if object.string("status")?.is_some_and(|status| status != Status::Pending.as_str()) {
        return Err(Invalid::new("status", "must be pending: no other timers can be canceled").into());
    }
    let prefix = |text: Cow<'_, str>| Key::parse(&text).map_err(|Invalid { rule, .. }| Invalid::new("key_prefix", rule));
    Ok(Selection {
        filter: Filter {
            status: Some(Status::Pending),
            namespace: object.string("namespace")?.map(|text| Namespace::parse(&text)).transpose()?,
            key_prefix: object.string("key_prefix")?.map(prefix).transpose()?.map(|prefix| prefix.as_str().to_owned()),
        },
        metadata: parse_metadata(&object)?,
        expected_max: usize::try_from(expected_max).unwrap_or(usize::MAX),
    })
}

/// An empty object would hold for every timer, which is hardly what was meant.
fn parse_metadata(object: &Object<'_>) -> Result<Members, Invalid> {
    let Some(json) = object.json("metadata", limits::METADATA_BYTES_MAX)? else { return Ok(Members::default()) };
    let members = Members::parse("metadata", &json)?;
    if members == Members::default() {
        return Err(Invalid::new("metadata", "must have at least one member"));
    }
    Ok(members)
}

#[cfg(test)]
mod tests;
