use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use domain::{AccessKey, AccessKeyId, Clock, Span, Timestamp};
use store::{KeyStore, StoreResult};
use tokio::sync::Mutex;

use crate::{CommandError, call};

/// How soon a key that was revoked on another node is refused on this one.
const READ_AGAIN_AFTER: Span = Span::from_secs(1);
/// How soon a key that was issued elsewhere is known here. A client with unknown keys makes the store be asked no more often than
/// this.
const LOOKED_FOR_AFTER: Span = Span::from_millis(100);

/// A cache of the API keys, so that not every request reads the store.
pub struct KeyRing {
    store: Arc<dyn KeyStore>,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    /// Held by the task that asks the store; the other tasks wait for what it learns.
    reading: Mutex<()>,
    uses: Option<Uses>,
}

/// Is told of a key that is used, and when. Must not wait.
pub type NoteKeyUse = Arc<dyn Fn(AccessKeyId, Timestamp) + Send + Sync>;

/// Notes each key once in a minute.
struct Uses {
    note: NoteKeyUse,
    /// The minute in which each valid key was last noted.
    noted: std::sync::Mutex<HashMap<AccessKeyId, i64>>,
}

impl Uses {
    fn of(&self, key: AccessKeyId, now: Timestamp) {
        let before = self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now.minute());
        if before != Some(now.minute()) {
            (self.note)(key, now);
        }
    }
}

type Keys = Arc<HashMap<AccessKeyId, Arc<AccessKey>>>;

#[derive(Default)]
struct Known {
    keys: Keys,
    /// When the keys were read, on the monotonic clock.
    read_at: Option<Duration>,
}

impl KeyRing {
    pub fn new(store: Arc<dyn KeyStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, known: RwLock::default(), reading: Mutex::new(()), uses: None }
    }

    /// The same, and each use of a key is noted.
    #[must_use]
    pub fn noting(self, note: NoteKeyUse) -> Self {
        Self { uses: Some(Uses { note, noted: std::sync::Mutex::default() }), ..self }
    }

    /// The key that a client shows, if there is one and it was not revoked.
    pub async fn find(&self, shown: &[u8]) -> Result<Option<Arc<AccessKey>>, CommandError> {
        let Some(id) = AccessKey::id_in(shown) else { return Ok(None) };
        Ok(self.by_id(id).await?.filter(|key| key.is_shown_by(shown)))
    }

    /// The key with this id, if there is one and it was not revoked. For callers that know by other means whose it is.
    pub async fn by_id(&self, id: AccessKeyId) -> Result<Option<Arc<AccessKey>>, CommandError> {
        let mut key = self.read_within(READ_AGAIN_AFTER).await?.get(&id).cloned();
        if key.is_none() {
            key = self.read_within(LOOKED_FOR_AFTER).await?.get(&id).cloned();
        }
        let key = key.filter(|key| key.is_valid());
        if let (Some(key), Some(uses)) = (&key, &self.uses) {
            uses.of(key.id, self.clock.now());
        }
        Ok(key)
    }

    /// Invalidates the cache, so that the next request reads the keys.
    pub async fn forget(&self) {
        // A reading that is under way may still see what was before.
        let _reading = self.reading.lock().await;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }

    /// The keys as they were at most this long ago. Waiting for the lock counts as waiting for the store: the tasks that queue while
    /// it hangs are all answered in time.
    async fn read_within(&self, age_max: Span) -> Result<Keys, CommandError> {
        if let Some(keys) = self.known_within(age_max) {
            return Ok(keys);
        }
        let read = async {
            let _reading = self.reading.lock().await;
            match self.known_within(age_max) {
                Some(keys) => Ok(keys),
                None => self.read().await,
            }
        };
        Ok(call::reading(read).await?)
    }

    async fn read(&self) -> StoreResult<Keys> {
        let read_at = Some(self.clock.monotonic());
        let keys = self.store.keys().await?;
        let keys = Arc::new(keys.into_iter().map(|key| (key.id, Arc::new(key))).collect());
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known { keys: Arc::clone(&keys), read_at };
        Ok(keys)
    }

    fn known_within(&self, age_max: Span) -> Option<Keys> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let age = self.clock.monotonic().saturating_sub(known.read_at?);
        (age < age_max.as_duration()).then(|| Arc::clone(&known.keys))
    }
}

#[cfg(test)]
mod tests {
    use domain::Access;
    use store::Operation;
    use store_testing::Fault;

    use super::*;
    use crate::rig::Rig;

    fn ring(rig: &Rig) -> KeyRing {
        KeyRing::new(rig.store.clone(), rig.clock.clone())
    }

    #[tokio::test]
    async fn a_key_that_was_issued_or_revoked_elsewhere_is_noticed() {
        let rig = Rig::new();
        let ring = ring(&rig);
        assert_eq!(ring.find(b"tk_00000000000000000000000000000000_0").await.unwrap(), None);
        let (key, text) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
        assert_eq!(ring.find(text.as_bytes()).await.unwrap(), None);
        rig.clock.advance(LOOKED_FOR_AFTER);
        assert_eq!(ring.find(text.as_bytes()).await.unwrap().as_deref(), Some(&key));
        assert_eq!(ring.find(format!("{text}0").as_bytes()).await.unwrap(), None);

        rig.commands.revoke_key(key.id).await.unwrap();
        assert!(ring.find(text.as_bytes()).await.unwrap().is_some());
        rig.clock.advance(READ_AGAIN_AFTER);
        assert_eq!(ring.find(text.as_bytes()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_use_is_noted_once_in_a_minute() {
        let rig = Rig::new();
        let noted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let ring = ring(&rig).noting({
            let noted = Arc::clone(&noted);
            Arc::new(move |key, at: Timestamp| noted.lock().unwrap().push((key, at.minute())))
        });
        let (key, text) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
        let first = rig.clock.now().minute();
        for minutes in [0, 0, 1, 0] {
            rig.clock.advance(Span::from_secs(60 * minutes));
            assert!(ring.find(text.as_bytes()).await.unwrap().is_some());
        }
        assert_eq!(*noted.lock().unwrap(), [(key.id, first), (key.id, first + 1)]);
        rig.commands.revoke_key(key.id).await.unwrap();
        rig.clock.advance(Span::from_secs(60));
        assert_eq!((ring.find(text.as_bytes()).await.unwrap(), noted.lock().unwrap().len()), (None, 2));
    }

    #[tokio::test]
    async fn what_was_done_here_is_known_at_once() {
        let rig = Rig::new();
        let ring = ring(&rig);
        assert_eq!(ring.find(b"tk_00000000000000000000000000000000_0").await.unwrap(), None);
        let (key, text) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
        ring.forget().await;
        assert!(ring.find(text.as_bytes()).await.unwrap().is_some());
        rig.commands.revoke_key(key.id).await.unwrap();
        ring.forget().await;
        assert_eq!(ring.find(text.as_bytes()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_store_that_is_away_opens_nothing() {
        let rig = Rig::new();
        let ring = ring(&rig);
        let (_, text) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
        assert!(ring.find(text.as_bytes()).await.unwrap().is_some());
        rig.clock.advance(READ_AGAIN_AFTER);
        rig.store.plan(Operation::Keys, Fault::NotDone);
        assert!(matches!(ring.find(text.as_bytes()).await, Err(CommandError::Unavailable(_))));
        assert!(ring.find(text.as_bytes()).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_not_waited_for_by_one_after_the_other() {
        const CALLERS: usize = 5;
        let rig = Rig::new();
        let ring = ring(&rig);
        let (_, text) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
        for _ in 0..CALLERS {
            rig.store.plan(Operation::Keys, Fault::Late(Span::from_secs(3600)));
        }
        let begun = tokio::time::Instant::now();
        for found in futures_util::future::join_all((0..CALLERS).map(|_| ring.find(text.as_bytes()))).await {
            assert!(matches!(found, Err(CommandError::Unavailable(_))), "{found:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(11), "{:?}", begun.elapsed());
    }
}
