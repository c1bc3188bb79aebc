use domain::Cause;

/// How a store call failed. What matters to a caller is whether something may have happened.
///
/// The causes are for the log: they may name tables and hosts, and never reach a client.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database could not be reached or refused the work. Nothing was changed; trying again may help.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] Cause),
    /// There is no space, or writing is not allowed. Nothing was changed; an operator must act before it can be.
    #[error("the store cannot be written: {0}")]
    Full(#[source] Cause),
    /// The answer to a commit was lost: it may or may not have happened.
    #[error("the outcome is unknown: {0}")]
    Unknown(#[source] Cause),
    /// Something stored cannot be understood. Nothing was changed.
    #[error("stored data cannot be read: {0}")]
    Corrupt(#[source] Cause),
}

pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// Whether it is certain that nothing was changed.
    pub const fn is_not_done(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// A short name for metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Full(_) => "full",
            Self::Unknown(_) => "unknown",
            Self::Corrupt(_) => "corrupt",
        }
    }
}
