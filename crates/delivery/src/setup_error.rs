/// Why no call can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the version cannot be part of a User-Agent header")]
    Version,
}
