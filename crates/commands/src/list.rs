use store::{Count, ListQuery, Page};

use crate::{CommandError, Commands, call};

/// One page of a list, and how many timers match in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub page: Page,
    pub total: Count,
}

impl Commands {
    /// One page of the timers that match, and how many match.
    pub async fn list(&self, query: &ListQuery) -> Result<Listed, CommandError> {
        let query = &ListQuery { filter: self.narrowed(&query.filter)?, ..query.clone() };
        let (page, total) = tokio::try_join!(
            call::reading(self.stores.timers.list(query)),
            call::reading(self.stores.timers.count(&query.filter, query.budget))
        )?;
        Ok(Listed { page, total })
    }
}
