use domain::{Timer, TimerId};

use crate::{CommandError, Commands, Verb};

impl Commands {
    /// Makes a pending timer due now, whenever it would have been. Its content stays, and so does what its caller asked for: the
    /// request that made it is still known again.
    pub async fn fire(&self, id: TimerId) -> Result<Timer, CommandError> {
        self.change(id, Verb::Fire, |timer, now| Ok(Timer { execute_at: now, ..timer })).await
    }
}

#[cfg(test)]
mod tests;
