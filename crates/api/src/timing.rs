use domain::{Given, Invalid, RequestedTime, Span, Timestamp};

/// `execute_at` or `delay`, if either is given.
pub(crate) fn requested(execute_at: &Given<'_, Timestamp>, delay: &Given<'_, Span>) -> Result<Option<RequestedTime>, Invalid> {
    if execute_at.is_given() && delay.is_given() {
        return Err(Invalid::new("delay", "must not be given together with execute_at"));
    }
    match execute_at.read("execute_at")? {
        Some(at) => Ok(Some(RequestedTime::At(at))),
        None => Ok(delay.read("delay")?.map(RequestedTime::After)),
    }
}
