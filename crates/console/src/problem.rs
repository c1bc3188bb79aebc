//! What can go wrong with a page.

use std::{sync::Arc, time::Duration};

use axum::response::{IntoResponse, Response};
use commands::CommandError;
use domain::Invalid;
use http::StatusCode;

/// Why a page is not shown, or an action not taken.
#[derive(Debug)]
pub(crate) enum Problem {
    Command(CommandError),
    NoSuchPage,
    NoForm(&'static str),
    /// The request was not made by a page of ours.
    OtherOrigin,
    ReadOnlyConsole,
    LoggedOut,
    Unsafe(&'static str),
    /// The key asks too often, with the time after which the next request may come.
    TooManyRequests(Duration),
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::Command(invalid.into())
    }
}

impl Problem {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Command(error) => status_of(error),
            Self::NoSuchPage => StatusCode::NOT_FOUND,
            Self::NoForm(_) => StatusCode::BAD_REQUEST,
            Self::OtherOrigin | Self::ReadOnlyConsole | Self::Unsafe(_) => StatusCode::FORBIDDEN,
            Self::LoggedOut => StatusCode::UNAUTHORIZED,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    pub(crate) const fn title(&self) -> &'static str {
        match self.status() {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::BAD_REQUEST => "That cannot be done",
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => "It has changed meanwhile",
            StatusCode::SERVICE_UNAVAILABLE => "The store does not answer",
            StatusCode::UNAUTHORIZED => "Logged out",
            StatusCode::TOO_MANY_REQUESTS => "Too many at once",
            _ => "Something went wrong",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Command(error) => sentence(&error.to_string()),
            Self::NoSuchPage => "There is no such page.".to_owned(),
            Self::NoForm(text) | Self::Unsafe(text) => (*text).to_owned(),
            Self::OtherOrigin => {
                "The request did not come from a page of this console, and nothing was changed. Behind a proxy, CONSOLE_URL must be \
                 the address that people open."
                    .to_owned()
            }
            Self::ReadOnlyConsole => "This console changes nothing: it was started with CONSOLE=read-only.".to_owned(),
            Self::LoggedOut => "Log in again.".to_owned(),
            Self::TooManyRequests(_) => "Too many requests with this key: RATE_LIMIT says how many there may be.".to_owned(),
        }
    }

    /// What helps, beside the sentence.
    pub(crate) const fn help(&self) -> Option<&'static str> {
        match self {
            Self::Command(CommandError::Unavailable(_)) => Some("This page is loaded again every few seconds."),
            Self::Command(CommandError::Forbidden(_)) => Some("Log in with a key that has this right, or ask for one."),
            _ => None,
        }
    }

    pub(crate) const fn retries_itself(&self) -> bool {
        matches!(self, Self::Command(CommandError::Unavailable(_)))
    }
}

pub(crate) const fn status_of(error: &CommandError) -> StatusCode {
    match error {
        CommandError::Invalid(_) => StatusCode::BAD_REQUEST,
        CommandError::NotFound | CommandError::NoSuchKey | CommandError::NoSuchOperation => StatusCode::NOT_FOUND,
        CommandError::Forbidden(_) => StatusCode::FORBIDDEN,
        CommandError::StaleRevision { .. } => StatusCode::PRECONDITION_FAILED,
        CommandError::WrongStatus { .. }
        | CommandError::Expired { .. }
        | CommandError::Conflict(_)
        | CommandError::IdTaken
        | CommandError::InDelivery(_)
        | CommandError::TooMany { .. } => StatusCode::CONFLICT,
        CommandError::Searching
        | CommandError::TooManySearches
        | CommandError::TooManyStreams(_)
        | CommandError::TooManyOperations => StatusCode::TOO_MANY_REQUESTS,
        CommandError::Unavailable(_) | CommandError::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
        CommandError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Begins with a capital letter, unless its first word is not one of English (`meta.a:1`, `max_attempts`), and ends with a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_english = word.trim_end_matches([':', ',']).chars().all(char::is_alphabetic);
    let mut chars = text.chars();
    let first = chars.next().filter(|_| is_english).map(char::to_uppercase).into_iter().flatten();
    let rest = if is_english { chars.as_str() } else { text };
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    first.chain(rest.chars()).chain(end.chars()).collect()
}

/// An answer without words, which `problem_page` finds: it knows who is to read them.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Refused(Arc::new(self)));
        response
    }
}

#[derive(Clone)]
pub(crate) struct Refused(pub(crate) Arc<Problem>);

pub(crate) async fn nowhere() -> Problem {
    Problem::NoSuchPage
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn sentences_begin_and_end_as_such() {
        for (text, expected) in [
            ("", "."),
            ("no such timer", "No such timer."),
            ("key: must not be empty", "Key: must not be empty."),
            ("Is it there?", "Is it there?"),
            ("status:wrong is no condition", "status:wrong is no condition."),
            ("max_attempts must be at least 1", "max_attempts must be at least 1."),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }
}
