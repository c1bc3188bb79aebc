//! Issued keys. There are few of them, and the key ring keeps them in memory.

use async_trait::async_trait;
use domain::{Access, AccessKey, AccessKeyId, Namespace, Namespaces, Rights, Timestamp};
use serde::{Deserialize, Serialize};
use store::{KeyStore, StoreResult};
use uuid::Uuid;

use crate::{
    Change, Columns, Condition, Consistency, PartitionedStore, Positions, Range, Write,
    json::{corrupt, from_json, to_json},
    layout,
};

/// Keys by their ids.
const BY_ID: u8 = 1;
/// The hashes that are taken.
const BY_HASH: u8 = 2;
/// More than there are.
const ALL: usize = 100_000;

#[derive(Serialize, Deserialize)]
struct StoredKey {
    name: String,
    hash: [u8; 32],
    /// `None`: all.
    namespaces: Option<Vec<String>>,
    rights: String,
    created_at: i64,
    revoked_at: Option<i64>,
}

impl StoredKey {
    fn of(key: &AccessKey) -> Self {
        let namespaces = match &key.access.namespaces {
            Namespaces::All => None,
            Namespaces::Only(bound) => Some(bound.iter().map(ToString::to_string).collect()),
        };
        Self {
            name: key.name.clone(),
            hash: key.hash,
            namespaces,
            rights: key.access.rights.as_str().to_owned(),
            created_at: key.created_at.as_micros(),
            revoked_at: key.revoked_at.map(Timestamp::as_micros),
        }
    }

    fn key(self, id: AccessKeyId) -> Option<AccessKey> {
        let namespaces = match self.namespaces {
            None => Namespaces::All,
            Some(names) => Namespaces::Only(names.iter().map(|name| Namespace::parse(name).ok()).collect::<Option<_>>()?),
        };
        Some(AccessKey {
            id,
            name: self.name,
            hash: self.hash,
            access: Access { namespaces, rights: Rights::parse(&self.rights)? },
            created_at: Timestamp::from_micros(self.created_at),
            revoked_at: self.revoked_at.map(Timestamp::from_micros),
        })
    }
}

fn by_id(id: AccessKeyId) -> Vec<u8> {
    [&[BY_ID][..], id.0.as_bytes()].concat()
}

#[async_trait]
impl KeyStore for PartitionedStore {
    async fn add_key(&self, key: &AccessKey) -> StoreResult<bool> {
        let partition = layout::keys();
        let hash = self.put([&[BY_HASH][..], &key.hash].concat(), Condition::Absent, Vec::new());
        let Change::Put { version, .. } = hash.change else { return Ok(false) };
        let taken = hash.key.clone();
        if !self.write_one(&partition, hash).await? {
            return Ok(false);
        }
        // A crash in between leaves a hash without a key, which is in the way of no other: keys are random.
        if self.write_one(&partition, self.put(by_id(key.id), Condition::Absent, to_json(&StoredKey::of(key)))).await? {
            return Ok(true);
        }
        let removal =
            Write { key: taken, condition: Condition::Is(version), change: Change::Delete, before: Positions::default() };
        self.write_one(&partition, removal).await?;
        Ok(false)
    }

    async fn keys(&self) -> StoreResult<Vec<AccessKey>> {
        let range = Range { from: vec![BY_ID], to: Some(vec![BY_HASH]), ..Range::all(ALL) };
        let rows = self.database.range(&layout::keys(), &range, Columns::HEAD, Consistency::Committed).await?;
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.key.get(1..).and_then(|id| Uuid::from_slice(id).ok()).map(AccessKeyId);
            match id.and_then(|id| from_json::<StoredKey>(&row.head).ok()?.key(id)) {
                Some(key) => keys.push(key),
                // It opens nothing, and does not lock out the holders of other keys.
                None => tracing::error!("an access key cannot be read"),
            }
        }
        keys.sort_by_key(|key| (key.created_at, key.id));
        Ok(keys)
    }

    async fn revoke_key(&self, id: AccessKeyId, now: Timestamp) -> StoreResult<bool> {
        let partition = layout::keys();
        loop {
            let rows = self.database.read(&partition, &[by_id(id)], Columns::HEAD, Consistency::Linearizable).await?;
            let Some(row) = rows.into_iter().next().flatten() else { return Ok(false) };
            let key: StoredKey = from_json(&row.head).map_err(corrupt)?;
            if key.revoked_at.is_some() {
                return Ok(false);
            }
            let revoked = StoredKey { revoked_at: Some(now.as_micros()), ..key };
            if self.write_one(&partition, self.put(by_id(id), Condition::Is(row.version), to_json(&revoked))).await? {
                return Ok(true);
            }
        }
    }
}
