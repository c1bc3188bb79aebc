use std::{sync::Arc, time::Duration};

use store::{Count, Filter, ListQuery, Page};

use crate::{CommandError, Commands};

/// How long a list waits for its total, which is an estimate where counting takes longer.
const TOTAL_BUDGET: Duration = Duration::from_millis(8);
/// The same where nothing but the total is asked for.
const COUNT_BUDGET: Duration = Duration::from_millis(200);

/// One page of a list, and how many timers match in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub page: Page,
    pub total: Count,
}

impl Commands {
    /// One page of the timers that match, and how many match.
    pub async fn list(&self, query: &ListQuery) -> Result<Listed, CommandError> {
        let query = &ListQuery { filter: self.narrowed(&query.filter)?, total_within: Some(TOTAL_BUDGET), ..query.clone() };
        let page = self.find(query.clone()).await?;
        let is_first = query.after.is_none() && query.offset == 0;
        let total = match page.total {
            _ if is_first && page.next.is_none() => Count::exactly(page.count() as u64),
            Some(total) => total,
            None => self.count_matching(query.filter.clone(), TOTAL_BUDGET).await?,
        };
        Ok(Listed { page, total })
    }

    /// One page of the timers that match.
    pub async fn search(&self, query: &ListQuery) -> Result<Page, CommandError> {
        let query = &ListQuery { filter: self.narrowed(&query.filter)?, ..query.clone() };
        self.find(query.clone()).await
    }

    /// How many timers match.
    pub async fn count(&self, filter: &Filter) -> Result<Count, CommandError> {
        self.count_matching(self.narrowed(filter)?, COUNT_BUDGET).await
    }

    /// The same, as a list tells it: an estimate where counting takes longer than a page may.
    pub async fn total(&self, filter: &Filter) -> Result<Count, CommandError> {
        self.count_matching(self.narrowed(filter)?, TOTAL_BUDGET).await
    }

    pub(crate) async fn find(&self, query: ListQuery) -> Result<Page, CommandError> {
        let timers = Arc::clone(&self.stores.timers);
        self.scan(async move { timers.list(&query).await }).await
    }

    pub(crate) async fn count_matching(&self, filter: Filter, budget: Duration) -> Result<Count, CommandError> {
        let timers = Arc::clone(&self.stores.timers);
        self.scan(async move { timers.count(&filter, budget).await }).await
    }

    /// Whether the caller may ask for what a filter names.
    pub fn check_filter(&self, filter: &Filter) -> Result<(), CommandError> {
        self.narrowed(filter).map(|_| ())
    }
}
