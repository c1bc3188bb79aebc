use domain::{Invalid, TimerId, limits};
use store::{Filter, ListQuery, Order, StoreError};

use crate::{CommandError, Commands, call};

/// How many timers are read, and canceled, in one call of the store.
pub(crate) const PAGE_TIMERS: u32 = 1_000;
/// How often a batch whose answer was lost is canceled again, which is idempotent.
const ROUNDS_MAX: u32 = 3;

/// Which timers are to be canceled.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub filter: Filter,
    /// When more timers match, the whole request is refused.
    pub expected_max: usize,
}

/// The result of a bulk cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanceledMany {
    pub matched: usize,
    /// The remaining ones were no longer pending.
    pub canceled: usize,
}

impl Commands {
    /// Cancels every pending timer that matches, if there are no more than expected. Timers that are registered meanwhile may
    /// be left alone. An API key runs one bulk cancel at a time.
    pub async fn cancel_matching(&self, selection: &Selection) -> Result<CanceledMany, CommandError> {
        self.check_may_write()?;
        if !(1..=limits::CANCELED_AT_ONCE_MAX).contains(&selection.expected_max) {
            return Err(Invalid::new("expected_max", format!("must lie between 1 and {}", limits::CANCELED_AT_ONCE_MAX)).into());
        }
        let _search = self.searches.begin(&self.caller).ok_or(CommandError::Searching)?;
        let found = self.select(selection).await?;
        if found.len() > selection.expected_max {
            return Err(CommandError::TooMany { expected_max: selection.expected_max });
        }
        let mut canceled = 0;
        for (number, batch) in found.chunks(PAGE_TIMERS as usize).enumerate() {
            let done = self.cancel_batch(batch, number > 0).await?;
            metrics::counter!("timer_canceled_total").increment(done as u64);
            canceled += done;
        }
        Ok(CanceledMany { matched: found.len(), canceled })
    }

    /// The ids that match. The search stops at one more than expected. It goes in the order of creation, in which nothing moves while
    /// it is looked at.
    async fn select(&self, selection: &Selection) -> Result<Vec<TimerId>, CommandError> {
        let mut query = ListQuery {
            filter: self.narrowed(&selection.filter)?,
            order: Order::Ascending,
            limit: PAGE_TIMERS,
            ..ListQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self.find(query.clone()).await?;
            found.extend(page.timers.iter().map(|timer| timer.id));
            query.after = page.next;
            if page.next.is_none() || found.len() > selection.expected_max {
                return Ok(found);
            }
        }
    }

    /// `is_partial` means that earlier batches were canceled, so that no error may claim that nothing was changed.
    pub(crate) async fn cancel_batch(&self, ids: &[TimerId], is_partial: bool) -> Result<usize, CommandError> {
        let mut rounds = 1;
        loop {
            match call::writing(self.stores.timers.cancel_all(ids, self.clock.now())).await {
                Ok(canceled) => return Ok(canceled.into_iter().filter(|canceled| *canceled).count()),
                Err(StoreError::Unknown(_)) if rounds < ROUNDS_MAX => rounds += 1,
                Err(error) if is_partial || rounds > 1 => return Err(CommandError::Unknown(error)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
