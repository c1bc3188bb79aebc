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
    /// The service cannot do it at the moment, or the outcome is unknown (503).
    #[error("{0}")]
    Unavailable(Refusal),
    /// The service met something unexpected (code 1).
    #[error("{0}")]
    Failed(Refusal),
    /// There was no answer.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable { url: String, cause: String },
    /// An answer that no timer service gives.
    #[error("{0}")]
    Unexpected(String),
    /// The client was used in a way that cannot work.
    #[error("{0}")]
    Usage(String),
}

/// What the service said to a request that it did not carry out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: u8,
    pub status: u16,
    pub message: String,
    /// What the log of the service has it under.
    pub request_id: Option<String>,
    pub retry_after: Option<Duration>,
    /// The whole envelope.
    pub envelope: String,
}

impl Refusal {
    /// The field that breaks a rule, as the message names it.
    pub fn field(&self) -> Option<&str> {
        let mut words = self.message.splitn(3, ' ');
        let (field, verb) = (words.next()?, words.next()?);
        let is_field = self.code == 2 && matches!(verb, "must" | "is" | "and" | "cannot") && !matches!(field, "the" | "this");
        is_field.then(|| field.trim_matches('\''))
    }
}

impl Error {
    pub(crate) fn of(refusal: Refusal) -> Self {
        match (refusal.code, refusal.status) {
            (2, _) => Self::Invalid(refusal),
            (3, _) => Self::NotFound(refusal),
            (4, _) => Self::Unauthorized(refusal),
            (5, _) => Self::TooMany(refusal),
            (6, _) => Self::Conflict(refusal),
            (_, 503) => Self::Unavailable(refusal),
            _ => Self::Failed(refusal),
        }
    }

    /// What the service said, if it did.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Invalid(refusal)
            | Self::NotFound(refusal)
            | Self::Unauthorized(refusal)
            | Self::TooMany(refusal)
            | Self::Conflict(refusal)
            | Self::Unavailable(refusal)
            | Self::Failed(refusal) => Some(refusal),
            Self::Unreachable { .. } | Self::Unexpected(_) | Self::Usage(_) => None,
        }
    }

    /// Whether the same request may have another outcome later.
    pub(crate) const fn is_passing(&self) -> bool {
        match self {
            Self::TooMany(_) | Self::Unavailable(_) | Self::Unreachable { .. } => true,
            Self::Invalid(refusal) => refusal.status == 408,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u8, status: u16, message: &str) -> Refusal {
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
        ] {
            assert_eq!(Error::of(refusal(code, status, "")).is_passing(), is_passing, "{status}");
        }
    }
}
