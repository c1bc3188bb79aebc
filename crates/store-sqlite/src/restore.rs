//! A backup takes the place of the database.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::{
    backup::{self, Draft, sync_directory},
    connection::{self, Role},
    files::{beside, private},
    lock::Lock,
    migrate::{self, Schema},
    open::{self, Found},
    open_error::OpenError,
};

/// Why nothing was restored, in one sentence that says what to do. The database is as it was, unless the sentence says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("{} cannot be read: {cause}", path.display())]
    NoBackup { path: PathBuf, cause: io::Error },
    #[error("{} is not a backup of a timer database; nothing was changed", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} has a log beside it, so it is a database and not a backup; make one of it with `timer backup`; nothing was changed",
        path.display()
    )]
    HasLog { path: PathBuf },
    #[error("{} is damaged ({cause}); nothing was changed; take another backup", path.display())]
    Damaged { path: PathBuf, cause: String },
    #[error("{} has schema version {version}, which a newer timer wrote; use that one; nothing was changed", path.display())]
    Newer { path: PathBuf, version: i64 },
    #[error("{} exists and was left as it is; `--replace` puts the backup in its place, and what it holds is lost", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Database(#[from] OpenError),
    #[error("{} cannot be written: {cause}; nothing was changed", path.display())]
    NotWritten { path: PathBuf, cause: io::Error },
    #[error("the backup is at {}, but what belonged to the database before could not be removed: {cause}; restore once more", path.display())]
    LeftOver { path: PathBuf, cause: io::Error },
    #[error("the backup is at {}, but its directory could not be brought to disk: {cause}; restore once more", path.display())]
    NotSynced { path: PathBuf, cause: io::Error },
}

/// Puts the backup `from` in the place of the database at `path`, whole and checked, and removes the log of the one before. Whatever
/// stops this half-way leaves the old database, or one that is refused at the start because that log is still there.
pub fn restore(path: &Path, from: &Path, replace: bool) -> Result<(), RestoreError> {
    open::check_library()?;
    let path = open::resolve(path)?;
    let _lock = Lock::take(&path)?;
    let left = ["", "-wal", "-shm", "-journal"].map(|suffix| beside(&path, suffix));
    let holds_anything = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    if !replace && left.iter().any(holds_anything) {
        return Err(RestoreError::Exists { path });
    }
    look_at(from)?;

    let not_written = |cause| RestoreError::NotWritten { path: path.clone(), cause };
    let draft = Draft::of_database(&path).map_err(not_written)?;
    copy(from, &draft.path).map_err(not_written)?;
    let damaged = |cause: String| RestoreError::Damaged { path: from.to_owned(), cause };
    let connection = connection::open(&draft.path, Role::SetUp).map_err(|error| damaged(error.to_string()))?;
    check(&connection, from)?;
    connection.close().map_err(|(_, error)| damaged(error.to_string()))?;
    draft.put_at(&path).map_err(not_written)?;
    let not_synced = |cause| RestoreError::NotSynced { path: path.clone(), cause };
    sync_directory(&path).map_err(not_synced)?;

    let left_over = |cause| RestoreError::LeftOver { path: path.clone(), cause };
    for stale in &left[1..] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(left_over(error)),
            _ => {}
        }
    }
    sync_directory(&path).map_err(not_synced)
}

fn look_at(from: &Path) -> Result<(), RestoreError> {
    let foreign = || RestoreError::Foreign { path: from.to_owned() };
    match fs::metadata(from) {
        Ok(found) if !found.is_file() => return Err(foreign()),
        Ok(_) => {}
        Err(cause) => return Err(RestoreError::NoBackup { path: from.to_owned(), cause }),
    }
    if fs::metadata(beside(from, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(RestoreError::HasLog { path: from.to_owned() });
    }
    match open::look_at(from) {
        Ok(Found::Ours) => Ok(()),
        Ok(Found::Nothing | Found::Foreign) => Err(foreign()),
        Err(OpenError::NotAllowed { path, cause }) => Err(RestoreError::NoBackup { path, cause }),
        Err(error) => Err(error.into()),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut to = private().truncate(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut to)?;
    to.sync_all()
}

/// Looks at the copy, which nothing else has open.
fn check(copy: &Connection, from: &Path) -> Result<(), RestoreError> {
    let damaged = |cause| RestoreError::Damaged { path: from.to_owned(), cause };
    backup::make_alone(copy).map_err(|error| damaged(error.to_string()))?;
    backup::check(copy).map_err(damaged)?;
    match migrate::look(copy) {
        Ok(Schema::Newer { version }) => Err(RestoreError::Newer { path: from.to_owned(), version }),
        Ok(Schema::Current | Schema::OtherShards { .. }) => Ok(()),
        Err(error) => Err(damaged(error.to_string())),
    }
}
