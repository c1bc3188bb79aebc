use std::sync::Arc;

use domain::{Namespace, Timestamp};
use store::{DueCounts, DueQuery};

use super::{BUDGET, PeriodRequest, StatsPeriod};
use crate::{CommandError, Commands};

/// How many timers are pending, by the time at which they are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueBuckets {
    pub period: StatsPeriod,
    /// When each begins, and how many there are. The last may be missing where the store did not get that far in time.
    pub buckets: Vec<(Timestamp, u64)>,
    pub is_estimate: bool,
    /// Whether none is missing.
    pub is_complete: bool,
}

impl Commands {
    /// What is due when, of the namespaces that are named, or of all that the caller sees.
    pub async fn due_buckets(&self, namespaces: &[Namespace], request: &PeriodRequest) -> Result<DueBuckets, CommandError> {
        let namespaces = self.visible(namespaces)?;
        let now = self.clock.now();
        let period = StatsPeriod::ahead(request, now)?;
        let StatsPeriod { from, to, step } = period;
        // The key of the cache has no finer time than its buckets.
        let minute = Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(60_000_000));
        let next_minute = minute.saturating_add(domain::Span::from_secs(60));
        let query = DueQuery { namespaces, from, to, step, now: next_minute, budget: BUDGET };
        let (stats, asked) = (Arc::clone(&self.stores.stats), query.clone());
        let counting = self.scan(async move { stats.due_counts(&asked).await });
        let DueCounts { pending, is_estimate } = self.stats.due.get(&query, self.clock.as_ref(), counting).await?;
        let is_complete = pending.len() == query.buckets();
        Ok(DueBuckets { period, buckets: period.starts().zip(pending).collect(), is_estimate, is_complete })
    }
}
