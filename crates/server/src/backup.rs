use crate::{
    cli::BackupOptions,
    exit::{Failure, say},
    stores,
};

/// `timer backup`: beside the service, over a connection of its own.
pub fn main(options: &BackupOptions) -> Result<(), Failure> {
    let done = stores::resolve(&options.store)?.backup(&options.file)?;
    say(format_args!("timer: {done}"));
    Ok(())
}
