//! Timers and their changes in the words of the API, for pages that take the same text without it.

use commands::{CommandError, NewTimerRequest, Patch};
use domain::Invalid;

use crate::{create, error::ApiError, request::BODY, update};

/// A timer in the words of `POST /timers`.
pub fn read_new_timer(text: &str) -> Result<NewTimerRequest, Invalid> {
    create::parse(BODY, text).map_err(refused)
}

/// A change of a timer in the words of `PUT /timers/{id}`.
pub fn read_patch(text: &str) -> Result<Patch, Invalid> {
    update::parse(text).map_err(refused)
}

fn refused(error: ApiError) -> Invalid {
    match error {
        ApiError::Command(CommandError::Invalid(invalid)) => invalid,
        ApiError::Malformed(text) => Invalid::new(BODY, text.strip_prefix(BODY).unwrap_or(&text).trim_start()),
        _ => Invalid::new(BODY, "cannot be read"),
    }
}
