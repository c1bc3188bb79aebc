use std::sync::Arc;

use domain::{Group, Namespace};
use store::GroupCount;
use tokio::time::Instant;

use crate::{
    CanceledMany, CommandError, Commands, call, cancel_matching,
    operations::{Spent, pause},
};

/// How many members are canceled in one commit.
const PAGE_TIMERS: usize = cancel_matching::PAGE_TIMERS as usize;

impl Commands {
    /// How many timers of a group there are, by their status. A group that is not known has none.
    pub async fn count_group(&self, namespace: &Namespace, group: &Group) -> Result<GroupCount, CommandError> {
        self.check_open(namespace)?;
        let (timers, namespace, group) = (Arc::clone(&self.stores.timers), namespace.clone(), group.clone());
        self.scan(async move { timers.count_group(&namespace, &group).await }).await
    }

    /// Cancels every timer of a group that waits, a thousand in one commit, with a pause after each as long as it took. Timers that are being
    /// delivered are left alone, and so may be those that are registered meanwhile. An API key runs one bulk cancel at a time. Idempotent.
    pub async fn cancel_group(&self, namespace: &Namespace, group: &Group) -> Result<CanceledMany, CommandError> {
        self.check_may_write()?;
        self.check_open(namespace)?;
        let _search = self.searches.begin(&self.caller).ok_or(CommandError::Searching)?;
        let mut all = CanceledMany { matched: 0, canceled: 0 };
        let mut after = None;
        loop {
            let began = Instant::now();
            let members = self.stores.timers.group_members(namespace, group, after, PAGE_TIMERS);
            let members = call::reading(members).await.map_err(|error| partly(error.into(), all.matched))?;
            let searching = began.elapsed();
            if !members.is_empty() {
                let canceled = self.cancel_batch(&members, all.matched > 0).await?;
                metrics::counter!("timer_canceled_total").increment(canceled as u64);
                all = CanceledMany { matched: all.matched + members.len(), canceled: all.canceled + canceled };
            }
            if members.len() < PAGE_TIMERS {
                return Ok(all);
            }
            after = members.last().copied();
            let spent = Spent { searching, writing: began.elapsed() - searching, timers: PAGE_TIMERS as u32 };
            tokio::time::sleep(pause(spent, false)).await;
        }
    }
}

/// Once some timers are canceled, no error may claim that nothing was changed.
fn partly(error: CommandError, canceled: usize) -> CommandError {
    match error {
        CommandError::Unavailable(cause) if canceled > 0 => CommandError::Unknown(cause),
        error => error,
    }
}

#[cfg(test)]
mod tests;
