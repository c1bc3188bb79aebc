/// Why there are no results. Each text is one sentence for the caller.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// An option asks for something impossible.
    #[error("{0}")]
    Option(String),
    /// The measurement itself did not work.
    #[error("{0}")]
    Run(String),
}
