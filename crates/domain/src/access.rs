//! Who may do what: keys that are bound to namespaces.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Invalid, Namespace, TimerId, Timestamp, limits};

/// Names a key, so that it can be listed and revoked. It is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessKeyId(pub Uuid);

/// A key as it is kept: never the key itself.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    pub id: AccessKeyId,
    /// What its owner calls it.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    pub access: Access,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// What a key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub namespaces: Namespaces,
    pub rights: Rights,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    All,
    /// At least one.
    Only(Vec<Namespace>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    Read,
    /// And read.
    Write,
}

impl Access {
    /// Everything, everywhere.
    pub const FULL: Self = Self { namespaces: Namespaces::All, rights: Rights::Write };

    pub fn sees(&self, namespace: &Namespace) -> bool {
        match &self.namespaces {
            Namespaces::All => true,
            Namespaces::Only(bound) => bound.contains(namespace),
        }
    }

    pub fn may_write(&self) -> bool {
        self.rights == Rights::Write
    }
}

impl Rights {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Write].into_iter().find(|rights| rights.as_str() == text)
    }
}

impl AccessKeyId {
    /// A new one, in the order of creation.
    pub fn random(now: Timestamp) -> Self {
        Self(TimerId::random(now).as_uuid())
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        TimerId::parse("id", text).map(|id| Self(id.as_uuid()))
    }
}

impl AccessKey {
    /// What is kept of a key. A key is long and random, so that a plain hash is enough.
    pub fn hash_of(secret: &[u8]) -> [u8; 32] {
        Sha256::digest(secret).into()
    }

    pub fn parse_name(text: &str) -> Result<String, Invalid> {
        let chars = text.chars().count();
        if chars == 0 || chars > limits::KEY_NAME_CHARS_MAX || text.chars().any(char::is_control) {
            return Err(Invalid::new("name", format!("must have 1 to {} printable characters", limits::KEY_NAME_CHARS_MAX)));
        }
        Ok(text.to_owned())
    }

    pub const fn is_valid(&self) -> bool {
        self.revoked_at.is_none()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, hash: _, access, created_at, revoked_at } = self;
        f.debug_struct("AccessKey")
            .field("id", id)
            .field("name", name)
            .field("access", access)
            .field("created_at", created_at)
            .field("revoked_at", revoked_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for AccessKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_its_namespaces_and_no_others() {
        let namespace = |text: &str| Namespace::parse(text).unwrap();
        let bound = Access { namespaces: Namespaces::Only(vec![namespace("a"), namespace("b")]), rights: Rights::Read };
        for (text, sees) in [("a", true), ("b", true), ("A", false), ("ab", false), ("default", false)] {
            assert_eq!(bound.sees(&namespace(text)), sees, "{text}");
            assert!(Access::FULL.sees(&namespace(text)));
        }
        assert!(!bound.may_write() && Access::FULL.may_write());
    }
}
