//! How many tests run at once.
//!
//! libtest starts as many tests as `RUST_TEST_THREADS` says, most of which wait for a time to come. The permits here keep apart those
//! that work: a small test takes one permit, a heavy one five, so that there are two heavy tests at most, and small ones beside them.
//! Permits are given in the order in which they are asked for, so that no test waits for ever.
//!
//! A test takes the machine alone only if what it measures would mean nothing beside another one; `make soak` runs those.

use tokio::sync::{Semaphore, SemaphorePermit};

const PERMITS: u32 = 12;

static MACHINE: Semaphore = Semaphore::const_new(PERMITS as usize);

/// Waits for the permit of a test that needs little.
pub async fn beside_others() -> SemaphorePermit<'static> {
    permits(1).await
}

/// Waits for the permits of a test that starts several nodes, or keeps a service or the disk busy.
pub async fn heavy() -> SemaphorePermit<'static> {
    permits(5).await
}

/// Waits for all permits, for a test that measures: no other test runs while they are held.
pub async fn alone() -> SemaphorePermit<'static> {
    permits(PERMITS).await
}

async fn permits(count: u32) -> SemaphorePermit<'static> {
    MACHINE.acquire_many(count).await.expect("the semaphore is never closed")
}
