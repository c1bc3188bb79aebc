//! Who may use the machine. There are few cores, and a test that measures time must not share them with one that loads them.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::const_new(());

/// For tests that measure time or load the machine: no other test runs while this is held.
pub async fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().await
}

/// For tests that need little.
pub async fn beside_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().await
}
