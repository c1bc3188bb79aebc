/// Why there are no figures. Each is one sentence for whoever asked for them.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Something was asked for that cannot be.
    #[error("{0}")]
    Option(String),
    /// The measurement itself did not work.
    #[error("{0}")]
    Run(String),
}
