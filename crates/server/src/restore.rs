use crate::{
    cli::RestoreOptions,
    exit::{Failure, say},
    stores,
};

/// `timer restore`: while no service runs.
pub fn main(options: &RestoreOptions) -> Result<(), Failure> {
    let done = stores::resolve(&options.store)?.restore(&options.file, options.replace)?;
    say(format_args!("timer: {done}"));
    Ok(())
}
