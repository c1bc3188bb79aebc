use domain::{Access, AccessKey, AccessKeyId};
use store::{StoreError, StoreResult};

use crate::{CommandError, Commands, call, call::ReadBack};

impl Commands {
    /// Issues a key that opens `access`, made of secret `random` bytes. The text is for its holder alone: only its hash
    /// is kept, so that it can be shown just this once.
    pub async fn create_key(&self, name: &str, access: Access, random: [u8; 32]) -> Result<(AccessKey, String), CommandError> {
        self.check_administrator()?;
        let (key, text) = AccessKey::issue(name, access, random, self.clock.now())?;
        let is_new = match call::writing(self.stores.keys.add_key(&key)).await {
            Err(cause @ StoreError::Unknown(_)) => self.confirm_key(&key, cause).await?,
            known => known?,
        };
        if is_new {
            tracing::info!(key.id = %key.id, key.name = key.name, namespaces = %key.access.namespaces, rights = key.access.rights.as_str(), "a key was issued");
            Ok((key, text))
        } else {
            Err(CommandError::Internal(StoreError::Corrupt("a new key was there already".into())))
        }
    }

    /// Every issued key, revoked ones included, the oldest first.
    pub async fn keys(&self) -> Result<Vec<AccessKey>, CommandError> {
        self.check_administrator()?;
        Ok(call::reading(self.stores.keys.keys()).await?)
    }

    /// Revokes a key for good. Idempotent.
    pub async fn revoke_key(&self, id: AccessKeyId) -> Result<(), CommandError> {
        self.check_administrator()?;
        let mut rounds = 0;
        loop {
            match call::writing(self.stores.keys.revoke_key(id, self.clock.now())).await {
                Ok(true) => {
                    tracing::info!(key.id = %id, "a key was revoked");
                    return Ok(());
                }
                Ok(false) if self.keys().await?.iter().any(|key| key.id == id) => return Ok(()),
                Ok(false) => return Err(CommandError::NoSuchKey),
                // A revoked key stays revoked, so repeating is harmless.
                Err(StoreError::Unknown(_)) if rounds < ROUNDS_MAX => rounds += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Finds out whether a key was stored, and stores it if not.
    async fn confirm_key(&self, key: &AccessKey, cause: StoreError) -> StoreResult<bool> {
        let mut read_back = ReadBack::of("add_key", cause);
        loop {
            if let Ok(keys) = call::reading(self.stores.keys.keys()).await {
                if keys.iter().any(|kept| kept.hash == key.hash) {
                    return Ok(true);
                }
                match call::writing(self.stores.keys.add_key(key)).await {
                    Err(StoreError::Unknown(_) | StoreError::Unavailable(_)) => {}
                    known => return known,
                }
            }
            read_back.pause().await?;
        }
    }
}

const ROUNDS_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use domain::{Namespace, Namespaces, Rights};
    use store::Operation;
    use store_testing::Fault;

    use super::*;
    use crate::rig::{NOW, Rig};

    const RANDOM: [u8; 32] = [7; 32];

    fn access() -> Access {
        Access { namespaces: Namespaces::Only(vec![Namespace::parse("a").unwrap()]), rights: Rights::Read }
    }

    #[tokio::test]
    async fn a_key_is_kept_as_a_hash_and_can_be_revoked_once() {
        let rig = Rig::new();
        let (key, text) = rig.commands.create_key("billing", access(), RANDOM).await.unwrap();
        assert_eq!((key.is_shown_by(text.as_bytes()), key.access.clone()), (true, access()));
        assert_eq!(rig.commands.keys().await.unwrap(), std::slice::from_ref(&key));
        rig.commands.revoke_key(key.id).await.unwrap();
        rig.commands.revoke_key(key.id).await.unwrap();
        assert!(!rig.commands.keys().await.unwrap()[0].is_valid());
        let unknown = AccessKeyId::random(NOW);
        assert!(matches!(rig.commands.revoke_key(unknown).await, Err(CommandError::NoSuchKey)));
        let refusal = rig.commands.create_key("", access(), RANDOM).await.unwrap_err();
        assert_eq!(refusal.to_string(), "name must have 1 to 100 printable characters");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_read_back() {
        for fault in [Fault::DoneUnknown, Fault::NotDoneUnknown] {
            let rig = Rig::new();
            rig.store.plan(Operation::AddKey, fault);
            rig.store.plan(Operation::Keys, Fault::NotDone);
            let (key, _) = rig.commands.create_key("k", access(), RANDOM).await.unwrap();
            assert_eq!(rig.commands.keys().await.unwrap(), std::slice::from_ref(&key), "{fault:?}");
            rig.store.plan(Operation::RevokeKey, fault);
            rig.commands.revoke_key(key.id).await.unwrap();
            assert!(!rig.commands.keys().await.unwrap()[0].is_valid(), "{fault:?}");
        }
    }
}
