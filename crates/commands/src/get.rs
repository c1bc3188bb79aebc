use domain::{Attempt, Timer, TimerId};

use crate::{CommandError, Commands, call};

impl Commands {
    /// The timer as it is now.
    pub async fn get(&self, id: TimerId) -> Result<Timer, CommandError> {
        let timer = call::reading(self.stores.timers.get(id)).await?;
        timer.filter(|timer| self.caller.sees(&timer.definition.namespace)).ok_or(CommandError::NotFound)
    }

    /// The recorded attempts of a timer, the oldest first.
    pub async fn attempts(&self, id: TimerId) -> Result<Vec<Attempt>, CommandError> {
        self.check_seen(id).await?;
        let attempts = call::reading(self.stores.timers.attempts(id)).await?;
        if attempts.is_empty() {
            // The list may be empty because the timer does not exist.
            self.get(id).await?;
        }
        Ok(attempts)
    }
}
