use std::time::Duration;

/// Why a call did not give what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A field breaks a rule (code 2).
    #[error("{0}")]
    Invalid(Refusal),
    #[error("{0}")]
    NotFound(Refusal),
    /// The key is wrong, or does not permit it (code 4).
    #[error("{0}")]
    Unauthorized(Refusal),
    /// Too many requests (code 5).
    #[error("{0}")]
    TooMany(Refusal),
    /// The timer has other content, another revision, or a status that does not permit it (code 6).
    #[error("{0}")]
    Conflict(Refusal),
    /// The service, or what stands in front of it, cannot do it at the moment, or the outcome is unknown (408, 502, 503, 504).
    #[error("{0}")]
    Unavailable(Refusal),
    /// The service met something unexpected, or it was not the service that answered.
    #[error("{0}")]
    Unexpected(Refusal),
    /// There was no answer, or not in time. Whether the service acted is unknown.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable { url: String, cause: String },
    /// The content of a successful answer is not what the call is about.
    #[error("{0}")]
    Unreadable(String),
    /// The client was used in a way that cannot work.
    #[error("{0}")]
    Usage(String),
}

/// What was said to a request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The code of the envelope; `None` if it was not the service that answered.
    pub code: Option<u8>,
    pub status: u16,
    pub message: String,
    /// What the log of the service has it under.
    pub request_id: Option<String>,
    pub retry_after: Option<Duration>,
    /// The whole envelope, or what was sent in place of one.
    pub envelope: String,
}

impl Refusal {
    /// The field that breaks a rule, as the message names it.
    pub fn field(&self) -> Option<&str> {
        let mut words = self.message.splitn(3, ' ');
        let (field, verb) = (words.next()?, words.next()?);
        let is_field =
            self.code == Some(2) && matches!(verb, "must" | "is" | "cannot" | "may") && !matches!(field, "the" | "this");
        is_field.then(|| field.trim_matches('\''))
    }
}

impl Error {
    /// Classifies a refusal by the code of its envelope, or else by its status.
    pub(crate) fn of(refusal: Refusal) -> Self {
        match (refusal.code, refusal.status) {
            (Some(2), _) => Self::Invalid(refusal),
            (Some(3), _) => Self::NotFound(refusal),
            (Some(4), _) => Self::Unauthorized(refusal),
            (Some(5), _) => Self::TooMany(refusal),
            (Some(6), _) => Self::Conflict(refusal),
            (_, 408 | 502..=504) => Self::Unavailable(refusal),
            (None, 400) => Self::Invalid(refusal),
            (None, 404) => Self::NotFound(refusal),
            (None, 401 | 403) => Self::Unauthorized(refusal),
            (None, 429) => Self::TooMany(refusal),
            (None, 409 | 412) => Self::Conflict(refusal),
            _ => Self::Unexpected(refusal),
        }
    }

    /// The name of the variant, as all SDKs have it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::NotFound(_) => "not_found",
            Self::Unauthorized(_) => "unauthorized",
            Self::TooMany(_) => "too_many",
            Self::Conflict(_) => "conflict",
            Self::Unavailable(_) => "unavailable",
            Self::Unreachable { .. } => "unreachable",
            Self::Unexpected(_) | Self::Unreadable(_) => "unexpected",
            Self::Usage(_) => "usage",
        }
    }

    /// What was said, if there was an answer.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Invalid(refusal)
            | Self::NotFound(refusal)
            | Self::Unauthorized(refusal)
            | Self::TooMany(refusal)
            | Self::Conflict(refusal)
            | Self::Unavailable(refusal)
            | Self::Unexpected(refusal) => Some(refusal),
            Self::Unreachable { .. } | Self::Unreadable(_) | Self::Usage(_) => None,
        }
    }

    /// Whether the same request may have another outcome later.
    pub(crate) const fn is_passing(&self) -> bool {
        match self.refusal() {
            Some(refusal) => matches!(refusal.status, 408 | 429 | 502..=504),
            None => matches!(self, Self::Unreachable { .. }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u8, status: u16, message: &str) -> Refusal {
        let code = Some(code).filter(|code| *code > 0);
        Refusal { code, status, message: message.into(), request_id: None, retry_after: None, envelope: String::new() }
    }

    #[test]
    fn the_field_that_breaks_a_rule_is_known() {
        for (code, message, field) in [
            (2, "execute_at must be in the future", Some("execute_at")),
            (2, "callback.url is required", Some("callback.url")),
            (2, "'colour' is not a known field", Some("colour")),
            (2, "the body is missing: send a JSON object", None),
            (6, "key must not be taken", None),
        ] {
            assert_eq!(refusal(code, 400, message).field(), field, "{message}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (code, status, is_passing) in [
            (1, 500, false),
            (1, 503, true),
            (2, 400, false),
            (2, 408, true),
            (3, 404, false),
            (4, 401, false),
            (5, 429, true),
            (6, 409, false),
            (0, 502, true),
            (0, 404, false),
        ] {
            assert_eq!(Error::of(refusal(code, status, "")).is_passing(), is_passing, "{status}");
        }
    }
}
