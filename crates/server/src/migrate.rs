use std::sync::Arc;

use domain::{Clock, SystemClock};

use crate::{
    cli::StoreOptions,
    exit::{Failure, say},
    settings,
};

/// `timer migrate`: opening a store brings it up to date, so that is all there is to do.
pub fn main(options: &StoreOptions) -> Result<(), Failure> {
    let database = settings::parse_database(options)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::Run(format!("no threads can be started: {error}.")))?;
    runtime.block_on(database.open(&clock))?;
    say(format_args!("timer: {} is up to date.", database.describe()));
    Ok(())
}
