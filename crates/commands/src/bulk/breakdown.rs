use std::{cmp::Reverse, collections::HashMap};

use domain::{Namespace, TimerId};
use futures_util::StreamExt;
use store::{Filter, ListQuery, SEARCH_BUDGET};
use tokio::time::Instant;

use super::in_order;
use crate::{CommandError, Commands};

/// The maximum number of timers that a breakdown looks at.
const LOOKED_AT_MAX: usize = 1_000;
/// How many namespaces and destinations are told: those with the most timers.
const TOLD_MAX: usize = 8;

/// Whose timers a bulk request would meet, and where they call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkBreakdown {
    /// Those with the most timers, the most first.
    pub by_namespace: Vec<(Namespace, u64)>,
    /// `host:port`, or a NATS subject; timers that call nothing are left out.
    pub by_destination: Vec<(String, u64)>,
    /// How many timers were looked at, the oldest first.
    pub timers: u64,
    /// Whether these are all that match. The search ends in time, and at 1,000 timers.
    pub is_complete: bool,
}

impl Commands {
    /// Counts the timers that a bulk request with this filter would meet, by namespace and by destination.
    pub async fn bulk_breakdown(&self, filter: &Filter) -> Result<BulkBreakdown, CommandError> {
        self.check_may_write()?;
        let filter = self.selected(filter, self.clock.now())?;
        let until = Instant::now() + SEARCH_BUDGET;
        let page = self.find(ListQuery { limit: LOOKED_AT_MAX as u32, ..in_order(filter) }).await?;
        let ids: Vec<TimerId> = page.timers.iter().map(|timer| timer.id).collect();
        let (mut namespaces, mut destinations) = (HashMap::new(), HashMap::new());
        let mut timers = 0;
        let mut reading = std::pin::pin!(self.read_all(&ids));
        // Some are looked at in any case.
        while timers == 0 || Instant::now() < until {
            let Some(timer) = reading.next().await else { break };
            timers += 1;
            let Some(timer) = timer? else { continue };
            *namespaces.entry(timer.definition.namespace.clone()).or_default() += 1;
            if let Some(address) = timer.definition.callback.address() {
                *destinations.entry(address.to_string()).or_default() += 1;
            }
        }
        let is_complete = page.next.is_none() && timers == ids.len() as u64;
        Ok(BulkBreakdown { by_namespace: most(namespaces), by_destination: most(destinations), timers, is_complete })
    }
}

fn most<T: Ord + Clone>(counts: HashMap<T, u64>) -> Vec<(T, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_cached_key(|(name, count)| (Reverse(*count), name.clone()));
    counts.truncate(TOLD_MAX);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bulk::tests::create_many, rig::Rig};

    #[tokio::test]
    async fn what_matches_is_counted_by_namespace_and_destination() {
        let rig = Rig::new();
        create_many(&rig, 3).await;
        let met = rig.commands.bulk_breakdown(&Filter::default()).await.unwrap();
        assert_eq!((met.timers, met.is_complete), (3, true));
        assert_eq!(met.by_namespace, [(Namespace::default(), 3)]);
        assert_eq!(met.by_destination.iter().map(|(_, count)| count).sum::<u64>(), 3);
        create_many(&rig, LOOKED_AT_MAX + 1).await;
        let met = rig.commands.bulk_breakdown(&Filter::default()).await.unwrap();
        assert!(!met.is_complete && met.timers <= LOOKED_AT_MAX as u64, "{met:?}");
    }
}
