//! API keys that are bound to namespaces.

use domain::{Access, AccessKey, AccessKeyId, Namespace, Namespaces, Rights, TimerId};

use crate::{Fixture, NOW, Stage, ahead, secs};

fn key(number: u8, namespaces: Namespaces, rights: Rights) -> AccessKey {
    AccessKey {
        id: AccessKeyId(TimerId::random(ahead(secs(u32::from(number)))).as_uuid()),
        name: format!("key {number} \"é\""),
        hash: [number; 32],
        access: Access { namespaces, rights },
        created_at: ahead(secs(u32::from(number))),
        revoked_at: None,
    }
}

fn bound(names: &[&str]) -> Namespaces {
    Namespaces::Only(names.iter().map(|name| Namespace::parse(name).unwrap()).collect())
}

pub async fn keys_come_back_as_they_were_kept_the_oldest_first(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    assert_eq!(stage.store.keys().await.unwrap(), []);
    let keys = [
        key(1, Namespaces::All, Rights::Write),
        key(2, bound(&["a"]), Rights::Read),
        key(3, bound(&["a, b", "é\"[]", "default"]), Rights::Write),
    ];
    for key in [&keys[2], &keys[0], &keys[1]] {
        assert!(stage.store.add_key(key).await.unwrap());
    }
    assert_eq!(stage.store.keys().await.unwrap(), keys);
}

pub async fn a_key_that_is_there_is_not_kept_twice(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let first = key(1, Namespaces::All, Rights::Write);
    assert!(stage.store.add_key(&first).await.unwrap());
    assert!(!stage.store.add_key(&first).await.unwrap());
    let same_id = AccessKey { hash: [9; 32], ..first.clone() };
    let same_hash = AccessKey { id: key(2, Namespaces::All, Rights::Read).id, ..first.clone() };
    for other in [same_id, same_hash] {
        assert!(!stage.store.add_key(&other).await.unwrap());
    }
    assert_eq!(stage.store.keys().await.unwrap(), [first]);
}

pub async fn a_revoked_key_stays_revoked(fixture: impl Fixture) {
    let stage = Stage::unowned(&fixture).await;
    let keys = [key(1, Namespaces::All, Rights::Write), key(2, bound(&["a"]), Rights::Read)];
    for key in &keys {
        assert!(stage.store.add_key(key).await.unwrap());
    }
    assert!(stage.store.revoke_key(keys[0].id, NOW).await.unwrap());
    assert!(!stage.store.revoke_key(keys[0].id, ahead(secs(1))).await.unwrap());
    assert!(!stage.store.revoke_key(key(3, Namespaces::All, Rights::Read).id, NOW).await.unwrap());
    let revoked = AccessKey { revoked_at: Some(NOW), ..keys[0].clone() };
    assert_eq!(stage.store.keys().await.unwrap(), [revoked, keys[1].clone()]);
}
