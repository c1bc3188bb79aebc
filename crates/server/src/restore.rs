use crate::{
    cli::RestoreOptions,
    exit::{Failure, say},
    settings,
};

/// `timer restore`: while no service runs.
pub fn main(options: &RestoreOptions) -> Result<(), Failure> {
    let done = settings::parse_database(&options.store)?.restore(&options.file, options.replace)?;
    say(format_args!("timer: {done}"));
    Ok(())
}
