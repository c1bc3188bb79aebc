//! `POST /timers/bulk`: changes every timer that matches.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use commands::{BulkAnswer, BulkPreview, BulkRequest, BulkWork, Reschedule, Shift};
use domain::{FromMember, Given, Invalid, Missed, Span, Timestamp, Whole};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    auth::Writing,
    body::JsonBody,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    filter::BulkFilter,
    operations::OperationView,
    request, schema,
    view::TimerView,
};

/// No request expects more.
const EXPECTED_MAX: u32 = 1_000_000_000;

/// A change of every timer that matches.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct BulkChange<'a> {
    /// What is done. `cancel`, `expire` and `reschedule` concern pending and paused timers, `fire` and `pause` pending ones, `resume`
    /// paused ones, `retry` failed and expired ones, `delete` those that have ended. Timers that match and that the action does not
    /// concern are skipped, and so are those that would expire before they are called. A timer with an `on_failure` that is let
    /// expire is `expired` as soon as that call is registered.
    #[schema(value_type = schema::BulkActionName, required = true)]
    #[serde(default)]
    action: Given<'a, Cow<'a, str>>,
    /// Which timers are meant: those for which everything holds that is said here.
    #[schema(value_type = BulkFilter, required = true)]
    #[serde(default)]
    filter: Given<'a, BulkFilter<'a>>,
    /// The new due times, for `reschedule`. For `retry` it may be `spread`: the attempts are made over that time, and not at once.
    #[schema(value_type = RescheduleTo, required = false)]
    #[serde(default)]
    set: Given<'a, SetMember>,
    /// `true` counts what matches, and changes nothing.
    #[schema(value_type = bool, required = false, example = false)]
    #[serde(default)]
    dry_run: Given<'a, Flag>,
    /// If more timers match than this, none of them is changed. Where they are too many to be counted at once, an operation counts them
    /// first, and fails. Required unless `dry_run` is `true`.
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 1000000000, example = 500)]
    #[serde(default)]
    expected_max: Given<'a, Whole<0, EXPECTED_MAX>>,
}

/// The new due times of a `reschedule`: exactly one of these.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
pub(crate) struct RescheduleTo<'a> {
    /// The same instant for all of them.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    execute_at: Given<'a, Timestamp>,
    /// So much later or earlier than each is due. What would be past is due now.
    #[schema(value_type = String, required = false, pattern = "^[+-]", example = "+1h")]
    #[serde(default)]
    shift: Given<'a, Cow<'a, str>>,
    /// Evenly over a time from now, in the order of their creation.
    #[schema(value_type = String, required = false, example = "30m")]
    #[serde(default)]
    spread: Given<'a, Span>,
}

struct SetMember(Reschedule);

impl FromMember<'_> for SetMember {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let one = || Invalid::new(name, "must be an object with exactly one of execute_at, shift and spread");
        let set: RescheduleTo<'_> = domain::read_object(raw.get()).ok_or_else(one)?;
        let at = set.execute_at.read("set.execute_at")?.map(Reschedule::At);
        let shift = set.shift.read("set.shift")?.map(|text| Shift::parse("set.shift", &text)).transpose()?;
        let spread = set.spread.read("set.spread")?.map(Reschedule::Spread);
        let mut given = [at, shift.map(Reschedule::Shift), spread].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(only), None) => Ok(Self(only)),
            _ => Err(one()),
        }
    }
}

struct Flag(bool);

impl FromMember<'_> for Flag {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        match raw.get() {
            "true" => Ok(Self(true)),
            "false" => Ok(Self(false)),
            _ => Err(Invalid::new(name, "must be true or false")),
        }
    }
}

/// What was changed at once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkChanged)]
pub(crate) struct ChangedView {
    #[schema(minimum = 0, example = 3)]
    changed: u64,
    /// Those that matched, and that the action does not concern, or that were changed or got another status meanwhile.
    #[schema(minimum = 0, example = 0)]
    skipped: u64,
}

/// What a dry run met.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkPreview)]
pub(crate) struct PreviewView {
    #[schema(minimum = 0, example = 3)]
    matched: u64,
    #[schema(example = false)]
    matched_is_estimate: bool,
    /// How many of them are in each status.
    #[schema(value_type = schema::CountsByStatus)]
    by_status: serde_json::Map<String, serde_json::Value>,
    /// The first of them, at most 20.
    examples: Vec<TimerView>,
}

/// What was changed, or what a dry run met.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = BulkResult)]
pub(crate) enum BulkView {
    Changed(ChangedView),
    Preview(PreviewView),
}

/// What is changed in the background.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkStarted)]
pub(crate) struct StartedView {
    operation: OperationView,
}

/// Change many timers
///
/// Does the same to every timer that matches. With `dry_run` nothing is changed, and the answer says what would be met. Otherwise
/// `expected_max` says how many are expected: if more match, none is changed (409). Up to 1,000 are changed at once; more become an
/// operation, which goes on in the background and survives a restart (202, see `/operations`). Where they cannot be counted within the
/// time of an answer, the operation counts them before it changes the first, and fails if there are more than expected. Timers that are
/// registered after the request are left alone. One that another request changes meanwhile keeps that change, and one that has another
/// status than when it was found is skipped.
#[utoipa::path(
    post, path = "/timers/bulk", tag = "timers", operation_id = "changeTimers", security(("ApiKey" = [])),
    request_body(content = BulkChange, description = "What is done, and to which timers.",
        example = json!({"action": "reschedule", "filter": {"status": "pending", "namespace": "billing"}, "set": {"shift": "+1h"}, "expected_max": 500})),
    responses(
        (status = 200, description = "They are changed: `timers changed successfully`; or, for a dry run, what matches: `dry run: nothing was changed`.",
            body = Envelope<BulkView>),
        (status = 202, description = "They are being changed: `operation started`.", body = Envelope<StartedView>),
        (status = 400, description = "A field breaks a rule; the message names both.", body = ErrorEnvelope),
        (status = 408, description = "The body did not arrive in time.", body = ErrorEnvelope),
        (status = 409, description = "More timers match than `expected_max`, and none was changed.", body = ErrorEnvelope),
        (status = 413, description = "The body is larger than 1 MiB.", body = ErrorEnvelope),
        (status = 415, description = "The body is not `application/json`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn bulk(Writing(commands): Writing, body: JsonBody) -> Result<Response, ApiError> {
    let BulkChange { action, filter, set, dry_run, expected_max } = request::read(&body.text)?;
    let work = work(&action.required("action")?, set.read("set")?)?;
    let filter = filter.required("filter")?.into_filter("filter")?;
    commands.check_bulk_work(&work).map_err(|invalid| invalid.within("set"))?;
    if dry_run.read("dry_run")?.is_some_and(|Flag(is_dry)| is_dry) {
        let preview = commands.preview_bulk(&filter).await?;
        return Ok(
            Answer::ok("dry run: nothing was changed", BulkView::Preview(shown(preview, commands.clock.now()))).into_response()
        );
    }
    let Whole(expected_max) = expected_max.required("expected_max")?;
    let request = BulkRequest { work, filter, expected_max: expected_max.into() };
    Ok(match commands.bulk(&request).await? {
        BulkAnswer::Done { changed, skipped } => {
            Answer::ok("timers changed successfully", BulkView::Changed(ChangedView { changed, skipped })).into_response()
        }
        BulkAnswer::Started(operation) => {
            let data = StartedView { operation: OperationView::of(*operation) };
            Answer { status: StatusCode::ACCEPTED, ..Answer::ok("operation started", data) }.into_response()
        }
    })
}

fn work(action: &str, set: Option<SetMember>) -> Result<BulkWork, Invalid> {
    let work = match (action, set) {
        ("reschedule", Some(SetMember(set))) => return Ok(BulkWork::Reschedule(set)),
        ("reschedule", None) => return Err(Invalid::new("set", "is required for reschedule")),
        ("retry", Some(SetMember(Reschedule::Spread(over)))) => return Ok(BulkWork::Retry { over: Some(over) }),
        ("retry", Some(_)) => return Err(Invalid::new("set", "must be spread for retry")),
        (_, Some(_)) => return Err(Invalid::new("set", "must only be given for reschedule and retry")),
        ("cancel", None) => BulkWork::Cancel,
        ("fire", None) => BulkWork::Fire,
        ("retry", None) => BulkWork::Retry { over: None },
        ("pause", None) => BulkWork::Pause { note: None },
        ("resume", None) => BulkWork::Resume { missed: Missed::Fire },
        ("expire", None) => BulkWork::Expire,
        ("delete", None) => BulkWork::Delete,
        _ => return Err(Invalid::new("action", format!("must be one of {}", BulkWork::NAMES.join(", ")))),
    };
    Ok(work)
}

fn shown(preview: BulkPreview, now: Timestamp) -> PreviewView {
    PreviewView {
        matched: preview.matched.timers,
        matched_is_estimate: preview.matched.is_estimate,
        by_status: preview.by_status.into_iter().map(|(status, count)| (status.to_string(), count.into())).collect(),
        examples: preview.examples.into_iter().map(|summary| TimerView::of_summary(summary, now)).collect(),
    }
}

#[cfg(test)]
mod tests;
