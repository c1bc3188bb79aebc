//! What really happened in the database, and whether it was allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use domain::TimerId;
use store::{ClaimToken, NodeId};

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing is handed out that was claimed after its epoch had ended.
    Fence,
    /// No claim is taken from a node that may rely on its lease.
    Lease,
    /// Nothing is called twice unless its claim was recovered in between.
    Duplicate,
    /// Everything comes to its end once nothing goes wrong any more.
    Stuck,
}

#[derive(Default)]
pub struct Audit {
    books: Mutex<Books>,
}

#[derive(Default)]
pub struct Books {
    pub violations: Vec<(Check, String)>,
    /// Claims that were written although another node had the shard.
    overtaken: BTreeSet<(TimerId, i64)>,
    calls: BTreeMap<TimerId, u64>,
    recoveries: BTreeMap<TimerId, u64>,
    lease_ends: BTreeMap<NodeId, Duration>,
    makers: BTreeMap<i64, NodeId>,
    pub unknown: u64,
}

impl Audit {
    pub fn with<T>(&self, look: impl FnOnce(&mut Books) -> T) -> T {
        look(&mut self.books.lock().unwrap())
    }
}

impl Books {
    fn violated(&mut self, check: Check, what: String) {
        self.violations.push((check, what));
    }

    /// A claim was written; `is_overtaken` when another epoch stood.
    pub fn written(&mut self, id: TimerId, token: i64, is_overtaken: bool) {
        if is_overtaken {
            self.overtaken.insert((id, token));
        }
    }

    pub fn claims(&mut self, node: NodeId, token: ClaimToken) {
        self.makers.insert(token.0, node);
    }

    /// A node relies on its lease until then.
    pub fn lives(&mut self, node: NodeId, until: Duration) {
        self.lease_ends.insert(node, until);
    }

    pub fn is_gone(&mut self, node: NodeId) {
        self.lease_ends.remove(&node);
    }

    /// A timer was handed out: at once, or when an unknown outcome was read back with its token.
    pub fn handed_out(&mut self, id: TimerId, token: ClaimToken, is_read_back: bool) {
        if !is_read_back && self.overtaken.contains(&(id, token.0)) {
            self.violated(Check::Fence, format!("{id} was handed out although its epoch had ended"));
        }
    }

    pub fn called(&mut self, id: TimerId) {
        let calls = self.calls.entry(id).or_default();
        *calls += 1;
        let (calls, recoveries) = (*calls, self.recoveries.get(&id).copied().unwrap_or_default());
        if calls > recoveries + 1 {
            self.violated(Check::Duplicate, format!("{id} was called {calls} times, and recovered {recoveries} times"));
        }
    }

    /// The nodes that rely on their leases at this moment: no look that begins now may take their claims for abandoned.
    pub fn relying(&self, now: Duration) -> BTreeSet<NodeId> {
        self.lease_ends.iter().filter(|(_, until)| **until > now).map(|(node, _)| *node).collect()
    }

    /// Another node is about to end a claim, which it found when these nodes relied on their leases.
    pub fn recovered(&mut self, id: TimerId, token: ClaimToken, relying: &BTreeSet<NodeId>) {
        *self.recoveries.entry(id).or_default() += 1;
        if let Some(maker) = self.makers.get(&token.0).copied().filter(|maker| relying.contains(maker)) {
            self.violated(Check::Lease, format!("{id} was taken from {maker:?}, which relied on its lease"));
        }
    }

    pub fn stuck(&mut self, id: TimerId, status: domain::Status) {
        self.violated(Check::Stuck, format!("{id} is still {status}"));
    }

    pub fn calls(&self) -> u64 {
        self.calls.values().sum()
    }

    pub fn recoveries(&self) -> u64 {
        self.recoveries.values().sum()
    }

    pub fn overtaken(&self) -> u64 {
        self.overtaken.len() as u64
    }
}
