use commands::Field;
use domain::{Expiry, Given, Invalid, RequestedTime, Span, Timestamp};

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

/// `expires_at` or `expires_after`, if either is given. `null` for either clears the expiry, however it was given.
pub(crate) fn expiry(expires_at: &Given<'_, Timestamp>, expires_after: &Given<'_, Span>) -> Result<Field<Expiry>, Invalid> {
    if expires_at.is_given() && expires_after.is_given() {
        return Err(Invalid::new("expires_after", "must not be given together with expires_at"));
    }
    if expires_at.is_null() || expires_after.is_null() {
        return Ok(Field::Clear);
    }
    let at = expires_at.read("expires_at")?.map(Expiry::At);
    let after = expires_after.read("expires_after")?.map(Expiry::After);
    Ok(at.or(after).map_or(Field::Absent, Field::Set))
}
