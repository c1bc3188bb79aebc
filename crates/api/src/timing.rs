use domain::{Invalid, RequestedTime, Span, Timestamp};

use crate::object::Object;

/// `execute_at` or `delay`, if either is given.
pub(crate) fn asked(object: &Object<'_>) -> Result<Option<RequestedTime>, Invalid> {
    let execute_at = object.string("execute_at")?;
    let delay = object.string("delay")?;
    match (execute_at, delay) {
        (Some(_), Some(_)) => Err(Invalid::new("delay", "must not be given together with execute_at")),
        (Some(text), None) => Timestamp::parse("execute_at", &text).map(|at| Some(RequestedTime::At(at))),
        (None, Some(text)) => Span::parse("delay", &text).map(|span| Some(RequestedTime::After(span))),
        (None, None) => Ok(None),
    }
}
