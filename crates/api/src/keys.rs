//! `/keys`: issued keys, which only the administrator's own key can make, show and revoke.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;

#[cfg(test)]
mod tests;

use domain::{AccessKey, AccessKeyId, Namespace, Namespaces, Rights, Timestamp};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A key, without what opens anything.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    /// Names the key, so that it can be revoked. It opens nothing.
    #[schema(value_type = String, format = "uuid", example = "01890a5d-ac96-774b-bcce-b302099a8057")]
    #[serde(serialize_with = "as_text")]
    id: AccessKeyId,
    #[schema(example = "billing service")]
    name: String,
    /// The namespaces that it opens; `null` for all of them.
    #[schema(value_type = Option<Vec<String>>, required = true, example = json!(["billing"]))]
    namespaces: Option<Vec<Namespace>>,
    #[schema(value_type = Rights)]
    rights: &'static str,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    created_at: Timestamp,
    /// When it was last used, to the minute; `null` if no use of it is recorded.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    last_used_at: Option<Timestamp>,
    /// When it was revoked, if it was. Then it opens nothing.
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    revoked_at: Option<Timestamp>,
}

impl From<AccessKey> for KeyView {
    fn from(key: AccessKey) -> Self {
        let AccessKey { id, name, hash: _, access, created_at, revoked_at } = key;
        let namespaces = match access.namespaces {
            Namespaces::All => None,
            Namespaces::Only(names) => Some(names),
        };
        Self { id, name, namespaces, rights: Rights::as_str(access.rights), created_at, last_used_at: None, revoked_at }
    }
}

impl KeyView {
    fn used(key: AccessKey, last_used_at: Option<Timestamp>) -> Self {
        Self { last_used_at, ..Self::from(key) }
    }
}

fn as_text<S: Serializer>(id: &AccessKeyId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}
