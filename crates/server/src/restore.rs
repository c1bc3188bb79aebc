use store_sqlite::RestoreError;

use crate::{
    cli::RestoreOptions,
    exit::{Failure, say},
    open_store,
    settings::{self, Database},
};

/// `timer restore`: while no service runs.
pub fn main(options: &RestoreOptions) -> Result<(), Failure> {
    let Database::Sqlite(path) = settings::parse_database(&options.store)? else {
        return Err(Failure::Configuration("PostgreSQL has its own tool for this: pg_restore.".to_owned()));
    };
    store_sqlite::restore(&path, &options.file, options.replace).map_err(|error| match error {
        RestoreError::Database(error) => open_store::not_opened(error),
        error => Failure::Run(format!("{error}.")),
    })?;
    say(format_args!("timer: {} is now what {} holds.", path.display(), options.file.display()));
    Ok(())
}
