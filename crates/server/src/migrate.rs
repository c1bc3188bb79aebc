use std::sync::Arc;

use domain::{Clock, SystemClock};

use crate::{
    exit::{Failure, say},
    stores::{self, StoreOptions},
};

/// `timer migrate`: opening a store brings it up to date, so that is all there is to do.
pub fn main(options: &StoreOptions) -> Result<(), Failure> {
    let database = stores::resolve(options)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let runtime =
        tokio::runtime::Runtime::new().map_err(|error| Failure::run(format!("no threads can be started: {error}."), error))?;
    runtime.block_on(database.open(&clock))?;
    say(format_args!("timer: {} is up to date.", database.describe()));
    Ok(())
}
