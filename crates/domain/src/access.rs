//! Access control: API keys that are bound to namespaces.

use std::{fmt, sync::Arc};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::{Invalid, Namespace, TimerId, Timestamp, limits};

/// The public id of an API key, by which it is listed and revoked. It is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessKeyId(pub Uuid);

/// An API key as it is stored: never the key itself.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    pub id: AccessKeyId,
    /// The name that its owner gave it.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    pub access: Access,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// The caller on whose behalf a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The operator with the administrator's key: every right in every namespace, and the management of issued keys.
    Administrator,
    Holder(Arc<AccessKey>),
}

/// What a key grants.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(rename_all = "lowercase", description = "What a key allows: `read`, or `write`, which includes reading.")]
pub enum Rights {
    Read,
    /// Includes reading.
    Write,
}

impl Access {
    /// Every right in every namespace.
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

impl Caller {
    pub const fn is_administrator(&self) -> bool {
        matches!(self, Self::Administrator)
    }

    /// The id of the issued key; `None` for the administrator's.
    pub fn key_id(&self) -> Option<AccessKeyId> {
        match self {
            Self::Administrator => None,
            Self::Holder(key) => Some(key.id),
        }
    }

    /// The only namespaces that are open to this caller; `None` when all are.
    pub fn bound_to(&self) -> Option<&[Namespace]> {
        match self {
            Self::Administrator => None,
            Self::Holder(key) => match &key.access.namespaces {
                Namespaces::All => None,
                Namespaces::Only(bound) => Some(bound),
            },
        }
    }

    pub fn sees(&self, namespace: &Namespace) -> bool {
        match self {
            Self::Administrator => true,
            Self::Holder(key) => key.access.sees(namespace),
        }
    }

    pub fn may_write(&self) -> bool {
        match self {
            Self::Administrator => true,
            Self::Holder(key) => key.access.may_write(),
        }
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
    /// A new id, in the order of creation.
    pub fn random(now: Timestamp) -> Self {
        Self(TimerId::random(now).as_uuid())
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        TimerId::parse("id", text).map(|id| Self(id.as_uuid()))
    }
}

/// Begins every key, so that one that leaked is recognised.
const PREFIX: &str = "tk_";

impl AccessKey {
    /// A new key, and the text that its holder presents: `tk_`, the id, and a secret. The text is for its holder alone; it is
    /// made of fresh `random` bytes.
    pub fn issue(name: &str, access: Access, random: [u8; 32], now: Timestamp) -> Result<(Self, String), Invalid> {
        let name = Self::parse_name(name)?;
        let id = AccessKeyId::random(now);
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{PREFIX}{}_{secret}", id.0.simple());
        let hash = Self::hash_of(text.as_bytes());
        Ok((Self { id, name, hash, access, created_at: now, revoked_at: None }, text))
    }

    /// The id in a presented key.
    pub fn id_in(shown: &[u8]) -> Option<AccessKeyId> {
        let (id, _) = std::str::from_utf8(shown).ok()?.strip_prefix(PREFIX)?.split_once('_')?;
        Uuid::try_parse(id).ok().map(AccessKeyId)
    }

    /// Whether the presented text is this key. The comparison takes constant time.
    pub fn is_shown_by(&self, shown: &[u8]) -> bool {
        Self::hash_of(shown).ct_eq(&self.hash).into()
    }

    /// The hash that is stored. A key is long and random, so a plain hash is enough.
    pub fn hash_of(text: &[u8]) -> [u8; 32] {
        Sha256::digest(text).into()
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

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Only(names) => f.write_str(&names.iter().map(Namespace::as_str).collect::<Vec<_>>().join(", ")),
        }
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
    fn a_key_opens_its_namespaces_and_no_other_ones() {
        let namespace = |text: &str| Namespace::parse(text).unwrap();
        let bound = Access { namespaces: Namespaces::Only(vec![namespace("a"), namespace("b")]), rights: Rights::Read };
        for (text, sees) in [("a", true), ("b", true), ("A", false), ("ab", false), ("default", false)] {
            assert_eq!(bound.sees(&namespace(text)), sees, "{text}");
            assert!(Access::FULL.sees(&namespace(text)));
        }
        assert!(!bound.may_write() && Access::FULL.may_write());
    }
    #[test]
    fn a_key_is_known_by_its_text_and_by_no_other() {
        let (key, text) = AccessKey::issue("k", Access::FULL, [7; 32], Timestamp::from_micros(1_893_456_000_000_000)).unwrap();
        assert_eq!(AccessKey::id_in(text.as_bytes()), Some(key.id));
        assert!(key.is_shown_by(text.as_bytes()) && text.starts_with("tk_") && text.len() == 100, "{text}");
        assert!(!format!("{key:?}").contains(&text[40..]));
        for other in [&text[..99], &text[3..], &format!("{text}0"), &text.to_uppercase(), ""] {
            assert!(!key.is_shown_by(other.as_bytes()), "{other}");
        }
        for shapeless in ["", "tk_", "tk__", "tk_a_b", "TK_0_0", &text[..35]] {
            assert_eq!(AccessKey::id_in(shapeless.as_bytes()), None, "{shapeless}");
        }
        assert_eq!(AccessKey::id_in(b"tk_\xff_"), None);
    }

    #[test]
    fn an_administrator_is_bound_to_nothing() {
        let name = Namespace::default();
        let access = Access { namespaces: Namespaces::Only(vec![name.clone()]), rights: Rights::Read };
        let (key, _) = AccessKey::issue("k", access, [7; 32], Timestamp::from_micros(0)).unwrap();
        let holder = Caller::Holder(Arc::new(key));
        assert_eq!((holder.bound_to(), Caller::Administrator.bound_to()), (Some([name.clone()].as_slice()), None));
        assert!(holder.sees(&name) && !holder.sees(&Namespace::parse("other").unwrap()) && !holder.may_write());
        assert!(Caller::Administrator.may_write() && Caller::Administrator.is_administrator() && !holder.is_administrator());
    }
}
