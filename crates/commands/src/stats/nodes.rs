use std::collections::{HashMap, HashSet};

use domain::Span;
use store::{NodeDigest, NodeId};

use super::destinations::IN_FLIGHT_KNOWN;
use crate::{CommandError, Commands, call};

const MINUTE: Span = Span::from_secs(60);

/// What a node does at the moment, as it wrote it down with its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodeLoad {
    /// Calls under way; none for a node that has written nothing for long.
    pub in_flight: u32,
    /// Calls that it began in the last whole minute, per second.
    pub fires_per_second: f64,
}

impl Commands {
    /// What nodes do. One that has made no call of late is left out.
    pub async fn node_loads(&self) -> Result<HashMap<NodeId, NodeLoad>, CommandError> {
        self.check_administrator()?;
        let now = self.clock.now();
        let mut loads: HashMap<NodeId, NodeLoad> = HashMap::new();
        for receiver in self.receivers(&[]).await? {
            if now.since(receiver.written_at) <= IN_FLIGHT_KNOWN {
                loads.entry(receiver.node).or_default().in_flight += receiver.report.in_flight;
            }
        }
        let minute = now.saturating_sub(MINUTE).minute();
        for NodeDigest { node, digest, .. } in self.digests_of(minute).await? {
            loads.entry(node).or_default().fires_per_second += digest.fired as f64 / 60.0;
        }
        Ok(loads)
    }

    /// What each node did within a minute, in all namespaces together. What this process knows is newer than what it wrote down.
    async fn digests_of(&self, minute: i64) -> Result<Vec<NodeDigest>, CommandError> {
        let mut digests = call::reading(self.stores.stats.digests(&[], minute, minute + 1)).await?;
        let is_meant = |digest: &NodeDigest| digest.minute == minute && digest.namespace.is_none();
        let live: Vec<_> = (self.stats.live.digests)().into_iter().filter(is_meant).collect();
        let newer: HashSet<_> = live.iter().map(|digest| digest.node).collect();
        digests.retain(|digest| !newer.contains(&digest.node));
        digests.extend(live);
        Ok(digests)
    }
}
