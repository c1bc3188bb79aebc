//! `GET /dev/inbox`, `DELETE /dev/inbox`: the calls that the receiver got.

use dev::{CALLS_KEPT, Call, DevTools, InboxQuery};
use domain::{Invalid, Span};
use http::Uri;
use serde::{Deserialize, Serialize};

use crate::{auth::Administering, envelope::Answer, error::ApiError, stats};

const LIMIT_DEFAULT: usize = 100;
const WAIT_MAX: Span = Span::from_secs(60);

/// Every parameter is a text until it is judged under its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    timer: Option<String>,
    path: Option<String>,
    after: Option<String>,
    limit: Option<String>,
    wait: Option<String>,
}

#[derive(Serialize)]
pub(super) struct CallsView {
    calls: Vec<Call>,
}

#[derive(Serialize)]
pub(super) struct ClearedView {
    deleted: usize,
}

pub(super) async fn list(tools: &DevTools, _: Administering, uri: Uri) -> Result<Answer<CallsView>, ApiError> {
    let Parameters { timer, path, after, limit, wait } = stats::parameters::read(&uri)?;
    let query = InboxQuery {
        timer,
        path,
        after: number("after", after.as_deref(), 0..=u64::MAX)?.unwrap_or(0),
        limit: number("limit", limit.as_deref(), 1..=CALLS_KEPT as u64)?.map_or(LIMIT_DEFAULT, |limit| limit as usize),
    };
    let calls = match wait.map(|text| Span::parse("wait", &text)).transpose()? {
        Some(wait) if wait > WAIT_MAX => return Err(Invalid::new("wait", format!("must not be longer than {WAIT_MAX}")).into()),
        Some(wait) => tools.inbox.wait(&query, wait.as_duration()).await,
        None => tools.inbox.list(&query),
    };
    Ok(Answer::ok("success", CallsView { calls }))
}

pub(super) fn clear(tools: &DevTools, _: Administering) -> Answer<ClearedView> {
    Answer::ok("the inbox is empty", ClearedView { deleted: tools.inbox.clear() })
}

fn number(name: &str, text: Option<&str>, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| range.contains(number));
    let rule = || format!("must be a whole number from {} to {}", range.start(), range.end());
    number.map(Some).ok_or_else(|| Invalid::new(name, rule()))
}
