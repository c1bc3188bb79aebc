use ::http::{Uri, uri::Authority};

/// Where a connection leads: whether it is encrypted, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    is_encrypted: bool,
    authority: Option<Authority>,
}

impl Origin {
    pub fn of(uri: &Uri) -> Self {
        Self { is_encrypted: uri.scheme_str() == Some("https"), authority: uri.authority().cloned() }
    }
}
