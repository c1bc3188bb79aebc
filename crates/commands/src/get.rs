use domain::{Timer, TimerId};

use crate::{CommandError, Commands, call};

impl Commands {
    /// The timer as it stands.
    pub async fn get(&self, id: TimerId) -> Result<Timer, CommandError> {
        call::reading(self.store.get(id)).await?.ok_or(CommandError::NotFound)
    }
}
