//! Where the calls of one process that lock the same shards wait for each other, on a server that cannot share locks.

use tokio::sync::{Mutex, MutexGuard};

use crate::dialect::Dialect;

/// Through which the calls of this process go that lock rows of shards, one after the other. Those about the shards themselves go before the
/// claims that wait.
#[derive(Debug)]
pub struct ShardGate {
    /// Elsewhere locks are shared, and no call waits here.
    is_shut: bool,
    claims: Mutex<()>,
    shards: Mutex<()>,
}

/// Its owner is through the gate.
pub struct Through<'a>(#[expect(dead_code, reason = "what counts is when they are dropped")] [Option<MutexGuard<'a, ()>>; 2]);

impl ShardGate {
    pub fn new(dialect: Dialect) -> Self {
        Self { is_shut: dialect == Dialect::Tidb, claims: Mutex::default(), shards: Mutex::default() }
    }

    /// Waits until a call may claim.
    pub async fn claim(&self) -> Option<Through<'_>> {
        if !self.is_shut {
            return None;
        }
        let claims = self.claims.lock().await;
        Some(Through([Some(self.shards.lock().await), Some(claims)]))
    }

    /// Waits until a call may acquire or release shards.
    pub async fn change(&self) -> Option<Through<'_>> {
        if !self.is_shut {
            return None;
        }
        Some(Through([Some(self.shards.lock().await), None]))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_call_about_the_shards_waits_for_no_claim_that_waits() {
        let gate = ShardGate::new(Dialect::Tidb);
        let first = gate.claim().await;
        let (mut second, mut change) = (Box::pin(gate.claim()), Box::pin(gate.change()));
        assert!((&mut second).now_or_never().is_none() && (&mut change).now_or_never().is_none());
        drop(first);
        assert!((&mut second).now_or_never().is_none());
        drop(change.await);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn where_locks_are_shared_no_call_waits_for_another() {
        let gate = ShardGate::new(Dialect::Mysql);
        let _claim = gate.claim().await;
        assert!(gate.claim().await.is_none() && gate.change().await.is_none());
    }
}
