use domain::{Span, Timestamp};

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// The receiver asked to be called again at this time. It may be past: [`crate::decide`] leaves at least a second.
    Rescheduled {
        at: Timestamp,
    },
    Failed(Failure),
    /// Nothing was sent, because this machine is short of something. It is no attempt, and says nothing about the receiver.
    NotAttempted {
        reason: Shortage,
    },
}

/// What this machine is short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shortage {
    /// Open files, of the process or of the machine.
    Descriptors,
    /// Local ports towards that receiver.
    Ports,
    Memory,
    Threads,
    /// Permits for lookups of host names: the tenant has too many under way that are not answered, or all have.
    Lookups,
}

/// Why an attempt did not work, in words for the owner of the timer: no secrets, no query of the URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// How long the receiver asks to be left alone.
    pub retry_after: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The receiver answered with this status.
    Status(u16),
    /// The time of the attempt, or of its connection, ran out.
    Timeout,
    Refused,
    /// There is no way to the address.
    Unreachable,
    /// The connection ended before the answer did.
    Reset,
    Tls,
    Dns,
    /// The address is closed to callbacks.
    Egress,
    /// The subject is closed to callbacks.
    Subject,
    /// The answer is not HTTP, or does not say what the `timer` protocol asks for.
    Answer,
    /// The answer is larger than what is read of one, or the message than what the server takes.
    TooLarge,
    /// The callback cannot be written as a request or a message.
    Request,
    /// There is no connection to the server.
    Disconnected,
    /// The server does not let us.
    Denied,
    /// No stream takes the message.
    NoStream,
    /// The server, or a stream, did not take the message for a reason of its own.
    Rejected,
    /// The broker does not have the event.
    Broker,
    /// No server of that kind is configured.
    NotConfigured,
}

/// What stands between the reason of a failed call and the address that was called.
pub(crate) const CALLED: &str = " (POST ";

/// Every label of an outcome.
pub(crate) const OUTCOMES: &[&str] = &[
    "delivered",
    "rescheduled",
    "status_3xx",
    "status_4xx",
    "status_5xx",
    "status_other",
    "timeout",
    "refused",
    "unreachable",
    "reset",
    "tls",
    "dns",
    "egress",
    "subject",
    "answer",
    "too_large",
    "request",
    "disconnected",
    "denied",
    "no_stream",
    "rejected",
    "broker",
    "not_configured",
];

impl Outcome {
    /// Whether the receiver has it.
    pub const fn is_delivered(&self) -> bool {
        matches!(self, Self::Delivered | Self::Rescheduled { .. })
    }

    /// A short name for metrics; there are few of them, whatever receivers answer.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Rescheduled { .. } => "rescheduled",
            Self::Failed(failure) => failure.kind.label(),
            Self::NotAttempted { .. } => "not_attempted",
        }
    }
}

impl Shortage {
    /// A short name for metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Descriptors => "descriptors",
            Self::Ports => "ports",
            Self::Memory => "memory",
            Self::Threads => "threads",
            Self::Lookups => "lookups",
        }
    }
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// The message without the address that was called, whose path may hold a token.
    pub fn reason(&self) -> &str {
        self.message.split_once(CALLED).map_or(&*self.message, |(reason, _)| reason)
    }
}

impl FailureKind {
    const fn label(self) -> &'static str {
        match self {
            Self::Status(300..=399) => "status_3xx",
            Self::Status(400..=499) => "status_4xx",
            Self::Status(500..=599) => "status_5xx",
            Self::Status(_) => "status_other",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Reset => "reset",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Egress => "egress",
            Self::Subject => "subject",
            Self::Answer => "answer",
            Self::TooLarge => "too_large",
            Self::Request => "request",
            Self::Disconnected => "disconnected",
            Self::Denied => "denied",
            Self::NoStream => "no_stream",
            Self::Rejected => "rejected",
            Self::Broker => "broker",
            Self::NotConfigured => "not_configured",
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Result<(), Failure>> for Outcome {
    fn from(result: Result<(), Failure>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Delivered)
    }
}
