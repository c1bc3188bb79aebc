use crate::CONFIRMED_WITHIN;

/// Why a message does not count as arrived, in words fit for its sender.
///
/// The message may have arrived nevertheless if [`is_uncertain`](Self::is_uncertain) says so; otherwise it has not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    #[error("not connected to the NATS server")]
    NotConnected,
    #[error("the connection to the NATS server was lost before it confirmed the message")]
    Lost,
    #[error("the NATS server did not confirm the message within {}s", CONFIRMED_WITHIN.as_secs())]
    TimedOut,
    #[error("no permission to publish to {subject}")]
    Denied { subject: String },
    #[error("no stream takes the subject {subject}")]
    NoStream { subject: String },
    #[error("the message has {bytes} bytes, more than the {max} that the NATS server takes")]
    TooLarge { bytes: usize, max: usize },
    /// Carries the words of the server, for example that a stream is full.
    #[error("the NATS server refused the message: {0}")]
    Refused(String),
    /// The server permits publishing, but not subscribing to the confirmation.
    #[error("the NATS user may not {missing} _INBOX.>, which is how an arrival is confirmed")]
    Unconfirmable { missing: &'static str },
    /// The client library has dropped some of the server's messages, possibly a refusal.
    #[error("the NATS server had too much to say to tell whether it took the message")]
    Unheard,
    #[error("it cannot be written as a NATS message: {0}")]
    Malformed(&'static str),
}

impl PublishError {
    /// Whether the message may have arrived without a confirmation.
    pub const fn is_uncertain(&self) -> bool {
        match self {
            Self::Lost | Self::TimedOut | Self::Refused(_) | Self::Unconfirmable { .. } | Self::Unheard => true,
            Self::NotConnected | Self::Denied { .. } | Self::NoStream { .. } | Self::TooLarge { .. } | Self::Malformed(_) => {
                false
            }
        }
    }
}
