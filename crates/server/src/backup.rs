use store_sqlite::BackupError;

use crate::{
    cli::BackupOptions,
    exit::{Failure, say},
    open_store,
    settings::{self, Database},
};

/// `timer backup`: beside the service, over a connection of its own.
pub fn main(options: &BackupOptions) -> Result<(), Failure> {
    let Database::Sqlite(path) = settings::parse_database(&options.store)? else {
        return Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_dump.".to_owned()));
    };
    store_sqlite::backup(&path, &options.file).map_err(|error| match error {
        BackupError::Database(error) => open_store::not_opened(error),
        error => Failure::Run(format!("{error}.")),
    })?;
    say(format_args!("timer: {} is a whole, checked copy of {}.", options.file.display(), path.display()));
    Ok(())
}
