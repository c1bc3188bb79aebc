use std::hash::{Hash, Hasher};

use ::http::{Uri, uri::Authority};

/// Where a connection leads: whether it is encrypted, host and port.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    is_encrypted: bool,
    authority: Option<Authority>,
}

impl Origin {
    pub fn of(uri: &Uri) -> Self {
        Self { is_encrypted: uri.scheme_str() == Some("https"), authority: uri.authority().cloned() }
    }

    fn key(&self) -> (bool, Option<&str>) {
        (self.is_encrypted, self.authority.as_ref().map(Authority::as_str))
    }
}

// Origins are compared by their text, which is in lower case since the callback was checked. An `Authority` is hashed letter by
// letter instead, which takes ten times as long, and a call is looked up by it more than once.
impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    // Hardly a host has both kinds of connections.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.authority.as_ref().map_or("", Authority::as_str).hash(state);
    }
}
