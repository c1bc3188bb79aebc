use domain::Cause;

/// Why a database cannot be used, with the error that it came from. Never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the address of the PostgreSQL database is wrong: {0}")]
    Address(String),
    #[error("PostgreSQL cannot be reached: {0}")]
    Unreachable(#[source] Cause),
    #[error("the PostgreSQL database cannot be used: {0}")]
    Unfit(#[source] Cause),
    #[error("the PostgreSQL database could not be set up: {0}")]
    Migration(#[source] Cause),
}
