//! One process for each database, whatever name it knows it by.
//!
//! Two locks: one on a file beside the database, which is there before the database is, and one on the database itself, which follows
//! it under every other name (a hard link, a bind mount, after a rename). The system gives both back when the process dies.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    sync::Arc,
};

use crate::{
    files::{beside, create_for_service, private},
    open_error::OpenError,
    presence::Presence,
};

/// Held as long as anything of the store lives, and dropped last: closing the file would take away the locks that SQLite has on it.
pub struct Lock {
    _beside: File,
    database: Option<Arc<File>>,
}

impl Lock {
    /// Locks the database at `path`, or the one that will be there.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let not_allowed = |cause| OpenError::NotAllowed { path: path.to_owned(), cause };
        let file = open_or_create(&beside(path, ".lock")).map_err(not_allowed)?;
        lock(&file, path)?;
        let mut taken = Self { _beside: file, database: None };
        match taken.take_database(path) {
            Err(OpenError::NotAllowed { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(taken),
            Err(error) => Err(error),
            Ok(()) => Ok(taken),
        }
    }

    /// Makes what notices when the database is taken away.
    pub fn presence(&self, path: &Path, commit: i32) -> io::Result<Presence> {
        let database = self.database.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Presence::of(Arc::clone(database), path, commit)
    }

    /// The database itself, before SQLite has it open.
    pub fn take_database(&mut self, path: &Path) -> Result<(), OpenError> {
        let not_allowed = |cause| OpenError::NotAllowed { path: path.to_owned(), cause };
        if self.database.is_some() {
            return Ok(());
        }
        // Network file systems lock exclusively only what can be written.
        let file = private().open(path).or_else(|_| File::open(path)).map_err(not_allowed)?;
        // Elsewhere this lock and those of SQLite are of one kind, and would be in each other's way.
        if cfg!(target_os = "linux") {
            lock(&file, path)?;
        }
        let names = names(&file).map_err(not_allowed)?;
        if names > 1 {
            return Err(OpenError::ManyNames { path: path.to_owned(), names });
        }
        self.database = Some(Arc::new(file));
        Ok(())
    }
}

fn open_or_create(path: &Path) -> io::Result<File> {
    match create_for_service(path) {
        // Another process may remove it in between, hence the second `create`.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => private().create(true).open(path),
        created => created,
    }
}

fn lock(file: &File, path: &Path) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(cause)) => Err(OpenError::NotAllowed { path: path.to_owned(), cause }),
    }
}

#[cfg(unix)]
fn names(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata()?;
    // A directory has many, and is refused for what it is.
    Ok(if found.is_file() { found.nlink() } else { 1 })
}

#[cfg(not(unix))]
fn names(_: &File) -> io::Result<u64> {
    Ok(1)
}
