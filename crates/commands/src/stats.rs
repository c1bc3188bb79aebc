//! Statistics for operators and tenants: each caller sees what its key opens.

mod destinations;
mod due;
mod fired;
mod key_uses;
mod namespaces;
mod nodes;
mod period;

use std::{fmt, sync::Arc, time::Duration};

use domain::{Namespace, Timestamp};
use store::{DueCounts, DueQuery, NamespaceCounts, NodeDigest, NodeReceiver};

use crate::{ShardMoves, single_flight::SingleFlight};

pub use self::{
    destinations::{DestinationHealth, DestinationStatus, Destinations},
    due::DueBuckets,
    fired::FiredBuckets,
    namespaces::{ListedNamespace, ListedNamespaces, NamespaceSettings},
    nodes::NodeLoad,
    period::{PeriodRequest, StatsPeriod},
};

/// How long the store may count.
const BUDGET: Duration = Duration::from_millis(200);

/// What statistics need besides the store. Cheap to clone; shared by all clones.
#[derive(Clone, Default)]
pub struct Stats {
    pub live: Live,
    /// What the operator has decided for single namespaces.
    pub configured: Arc<[NamespaceSettings]>,
    pub shard_moves: ShardMoves,
    due: SingleFlight<DueQuery, DueCounts>,
    namespaces: SingleFlight<Vec<Namespace>, NamespaceCounts>,
}

impl Stats {
    pub fn new(live: Live, configured: Vec<NamespaceSettings>, shard_moves: ShardMoves) -> Self {
        Self { live, configured: configured.into(), shard_moves, ..Self::default() }
    }
}

/// Counts a timer of this namespace that was registered at this time.
pub type CountCreated = Arc<dyn Fn(&Namespace, Timestamp) + Send + Sync>;

/// What this process gathers; the store may have some of it already, or an older state.
#[derive(Clone)]
pub struct Live {
    pub created: CountCreated,
    pub digests: Arc<dyn Fn() -> Vec<NodeDigest> + Send + Sync>,
    pub receivers: Arc<dyn Fn() -> Vec<NodeReceiver> + Send + Sync>,
}

impl Default for Live {
    /// Nothing.
    fn default() -> Self {
        Self { created: Arc::new(|_, _| ()), digests: Arc::new(Vec::new), receivers: Arc::new(Vec::new) }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

/// Whether a namespace is among those that are meant.
fn is_meant(visible: &[Namespace], namespace: &Namespace) -> bool {
    visible.is_empty() || visible.contains(namespace)
}

#[cfg(test)]
mod tests;
