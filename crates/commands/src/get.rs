use domain::{Attempt, Timer, TimerId};

use crate::{CommandError, Commands, call};

impl Commands {
    /// The timer as it stands.
    pub async fn get(&self, id: TimerId) -> Result<Timer, CommandError> {
        let timer = call::reading(self.stores.timers.get(id)).await?;
        timer.filter(|timer| self.caller.sees(&timer.definition.namespace)).ok_or(CommandError::NotFound)
    }

    /// What is remembered of its attempts, the oldest first.
    pub async fn attempts(&self, id: TimerId) -> Result<Vec<Attempt>, CommandError> {
        self.check_seen(id).await?;
        let attempts = call::reading(self.stores.timers.attempts(id)).await?;
        if attempts.is_empty() {
            // There may be nothing to tell because there is no timer.
            self.get(id).await?;
        }
        Ok(attempts)
    }
}
