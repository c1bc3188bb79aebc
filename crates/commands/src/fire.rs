use domain::{Timer, TimerId};

use crate::{CommandError, Commands, Verb};

impl Commands {
    /// Makes a pending timer due now, if it has the `expected` revision where one is given. Its content stays, and so does the time
    /// that its caller asked for: a repetition of the original request is still recognised. Refuses a timer whose expiry has come: it
    /// would end without a call. An expiry that counts from the due time moves with it.
    pub async fn fire(&self, id: TimerId, expected: Option<u32>) -> Result<Timer, CommandError> {
        let fired = |timer: Timer, now| {
            let timer = Timer { execute_at: now, ..timer };
            match timer.expires_at() {
                Some(at) if at <= now => Err(CommandError::Expired { verb: Verb::Fire, at }),
                _ => Ok(timer),
            }
        };
        self.change(id, Verb::Fire, expected, fired).await
    }
}

#[cfg(test)]
mod tests;
