//! `POST /dev/clock/advance`: moves the clock, and fires what becomes due on the way.

use std::borrow::Cow;

use dev::{Advance, AdvanceError, Advanced, DevTools};
use domain::{Given, Invalid, Span, Timestamp};
use serde::Deserialize;

use crate::{auth::Administering, body::JsonBody, envelope::Answer, error::ApiError, request};

const TIMEOUT_DEFAULT: Span = Span::from_secs(30);
const TIMEOUT_MAX: Span = Span::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
struct AdvanceClock<'a> {
    #[serde(default)]
    by: Given<'a, Span>,
    #[serde(default)]
    to: Given<'a, Timestamp>,
    #[serde(default)]
    until: Given<'a, Cow<'a, str>>,
    #[serde(default)]
    timeout: Given<'a, Span>,
}

pub(super) async fn advance(tools: &DevTools, _: Administering, body: JsonBody) -> Result<Answer<Advanced>, ApiError> {
    let (by, timeout) = read(&body.text)?;
    match tools.clock.advance(by, timeout.as_duration()).await {
        Ok(advanced) => Ok(Answer::ok("the clock was moved", advanced)),
        Err(AdvanceError::Past) => Err(Invalid::new("to", "must be in the future").into()),
        Err(AdvanceError::NotMovable) => {
            Err(ApiError::Malformed("the clock can be moved only beside an SQLite file: this database has its own".to_owned()))
        }
        Err(AdvanceError::Store(cause)) => {
            tracing::error!(%cause, "the clock could not be moved");
            Err(ApiError::Internal)
        }
    }
}

fn read(text: &str) -> Result<(Advance, Span), ApiError> {
    let AdvanceClock { by, to, until, timeout } = request::read(text)?;
    let wanted = match (by.read("by")?, to.read("to")?, until.read("until")?.as_deref()) {
        (Some(by), None, None) => Advance::By(by),
        (None, Some(to), None) => Advance::To(to),
        (None, None, Some("next")) => Advance::UntilNext,
        (None, None, Some("idle")) => Advance::UntilIdle,
        (None, None, Some(_)) => return Err(Invalid::new("until", "must be next or idle").into()),
        _ => return Err(ApiError::Malformed("exactly one of by, to and until must be given".to_owned())),
    };
    let timeout = timeout.read("timeout")?.unwrap_or(TIMEOUT_DEFAULT);
    if timeout > TIMEOUT_MAX {
        return Err(Invalid::new("timeout", format!("must not be longer than {TIMEOUT_MAX}")).into());
    }
    Ok((wanted, timeout))
}
