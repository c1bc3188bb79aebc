use async_trait::async_trait;
use domain::{AccessKey, AccessKeyId, Timestamp};

use crate::StoreResult;

/// The issued API keys.
///
/// [`Store`](crate::Store) states what holds for every call.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Keeps a key. `false` when one with this id or this hash is there already.
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool>;

    /// Every key, revoked ones included, the oldest first.
    async fn keys(&self) -> StoreResult<Vec<AccessKey>>;

    /// Revokes a key for good. `false` when there is none, or it was revoked before.
    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool>;
}
