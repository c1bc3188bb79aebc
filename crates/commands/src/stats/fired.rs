use std::collections::HashSet;

use domain::{Namespace, Timestamp};
use store::{Digest, NodeDigest};

use super::{PeriodRequest, StatsPeriod};
use crate::{CommandError, Commands, call};

/// What happened, by the time at which it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredBuckets {
    pub period: StatsPeriod,
    /// When each begins, and what happened on all nodes.
    pub buckets: Vec<(Timestamp, Digest)>,
}

impl Commands {
    /// What was fired when, in the namespaces that are named, or in all that the caller sees. Of this process everything is known,
    /// of other processes what they have written down.
    pub async fn fired_buckets(&self, namespaces: &[Namespace], request: &PeriodRequest) -> Result<FiredBuckets, CommandError> {
        let visible = self.visible(namespaces)?;
        let period = StatsPeriod::behind(request, self.clock.now())?;
        let written = call::reading(self.stores.stats.digests(&visible, period.from, period.to)).await?;
        let live = (self.stats.live.digests)();
        let newer: HashSet<_> = live.iter().map(|digest| (digest.node, digest.minute)).collect();
        let mut buckets: Vec<_> = period.starts().map(|start| (start, Digest::default())).collect();
        let mut add = |NodeDigest { minute, digest, .. }: &NodeDigest| {
            if let Some((_, sum)) = period.bucket(*minute).and_then(|bucket| buckets.get_mut(bucket)) {
                sum.add(digest);
            }
        };
        written.iter().filter(|digest| !newer.contains(&(digest.node, digest.minute))).for_each(&mut add);
        let is_meant = |digest: &&NodeDigest| match &digest.namespace {
            Some(namespace) => visible.contains(namespace),
            None => visible.is_empty(),
        };
        live.iter().filter(is_meant).for_each(&mut add);
        Ok(FiredBuckets { period, buckets })
    }
}
