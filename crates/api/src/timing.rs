use domain::{Asked, Invalid, Span, Timestamp};

use crate::object::Object;

/// `execute_at` or `delay`, if either is given.
pub(crate) fn asked(object: &Object<'_>) -> Result<Option<Asked>, Invalid> {
    let execute_at = object.string("execute_at")?;
    let delay = object.string("delay")?;
    match (execute_at, delay) {
        (Some(_), Some(_)) => Err(Invalid::new("delay", "must not be given together with execute_at")),
        (Some(text), None) => Timestamp::parse("execute_at", &text).map(|at| Some(Asked::At(at))),
        (None, Some(text)) => Span::parse("delay", &text).map(|span| Some(Asked::After(span))),
        (None, None) => Ok(None),
    }
}
