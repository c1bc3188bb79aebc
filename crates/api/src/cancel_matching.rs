//! `POST /timers/cancel`: cancels every pending timer that matches.

use std::{borrow::Cow, collections::BTreeMap};

use commands::{CanceledMany, Filter, Selection};
use domain::{Given, Invalid, Json, JsonText, Key, Namespace, Status, Whole, limits, names_of};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    request, schema,
};

/// Which timers are to be canceled: those for which everything holds that is said here. At least one condition is needed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct CancelTimers<'a> {
    /// Only timers of this namespace.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "default")]
    #[serde(default)]
    namespace: Given<'a, Namespace>,
    /// Nothing else can be canceled: say it to mean all of them.
    #[schema(value_type = schema::PendingStatus, required = false)]
    #[serde(default)]
    status: Given<'a, Cow<'a, str>>,
    /// Only timers whose key begins with this.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-")]
    #[serde(default)]
    key_prefix: Given<'a, Key>,
    /// Only timers whose metadata is an object with all of these members, written in the same way: blanks mean nothing, but `1`
    /// is not `1.0`. At most 64 KiB, nested at most 64 deep.
    #[schema(value_type = schema::Members, required = false)]
    #[serde(default)]
    metadata: Given<'a, Json<{ limits::METADATA_BYTES_MAX }>>,
    /// If more timers match than this, none of them is canceled.
    #[schema(value_type = u32, required = true, minimum = 1, maximum = 10000, example = 100)]
    #[serde(default)]
    expected_max: Given<'a, Whole<1, { limits::CANCELED_AT_ONCE_MAX as u32 }>>,
}

/// The names of the conditions.
pub(crate) fn conditions() -> Vec<&'static str> {
    names_of::<CancelTimers<'_>>().iter().copied().filter(|name| *name != "expected_max").collect()
}

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
    request_body(content = CancelTimers, description = "Which timers are meant, and how many are expected.",
        example = json!({"namespace": "default", "key_prefix": "order-456-", "metadata": {"owner": "ada"}, "expected_max": 10})),
    responses(
        (status = 200, description = "They are canceled, perhaps none: `timers canceled successfully`.", body = Envelope<CanceledView>),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "More timers match than `expected_max`, and none was changed.", body = ErrorEnvelope),
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
    let CancelTimers { namespace, status, key_prefix, metadata, expected_max } = request::read(text)?;
    let Whole(expected_max) = expected_max.required("expected_max")?;
    if !namespace.is_given() && !status.is_given() && !key_prefix.is_given() && !metadata.is_given() {
        return Err(Invalid::new(conditions().join(", "), "must not all be missing: say which timers are meant").into());
    }
    if status.read("status")?.is_some_and(|status| status != Status::Pending.as_str()) {
        return Err(Invalid::new("status", "must be pending: no other timers can be canceled").into());
    }
    Ok(Selection {
        filter: Filter {
            status: vec![Status::Pending],
            namespaces: namespace.read("namespace")?.into_iter().collect(),
            key_prefix: key_prefix.read("key_prefix")?.map(|prefix| prefix.as_str().to_owned()),
            members: metadata.read("metadata")?.map(members).transpose()?.unwrap_or_default(),
            ..Filter::default()
        },
        expected_max: usize::try_from(expected_max).unwrap_or(usize::MAX),
    })
}

/// The members of an object, with their texts. An empty object would hold for every timer, which is hardly what was meant.
fn members(Json(json): Json<{ limits::METADATA_BYTES_MAX }>) -> Result<BTreeMap<String, String>, Invalid> {
    let raw: BTreeMap<String, &RawValue> =
        serde_json::from_str(json.as_str()).map_err(|_| Invalid::new("metadata", "must be an object"))?;
    if raw.is_empty() {
        return Err(Invalid::new("metadata", "must have at least one member"));
    }
    Ok(raw.into_iter().map(|(name, value)| (name, JsonText::trusted(value.get()).without_blanks())).collect())
}

#[cfg(test)]
mod tests;
