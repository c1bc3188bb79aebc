use domain::{Timer, TimerId};

use crate::{CommandError, Commands, Verb};

impl Commands {
    /// Makes a pending timer due now, if it has the `expected` revision where one is given. Its content stays, and so does the time
    /// that its caller asked for: a repetition of the original request is still recognised.
    pub async fn fire(&self, id: TimerId, expected: Option<u32>) -> Result<Timer, CommandError> {
        self.change(id, Verb::Fire, expected, |timer, now| Ok(Timer { execute_at: now, ..timer })).await
    }
}

#[cfg(test)]
mod tests;
