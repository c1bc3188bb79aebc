//! Whether the database is still where the next start will look for it.
//!
//! A file that was deleted or replaced lives on for those who have it open, and what they write goes with it.

use std::{
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use store::{StoreError, StoreResult};

/// Names no path, so that it can be told to everybody.
pub const NOT_IN_PLACE: &str = "the database file was deleted or replaced while the service uses it";

/// The file that is open, and where it was found.
pub struct Presence {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    is_missing: AtomicBool,
}

impl Presence {
    pub fn of(file: &File, path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(&file.metadata()?), is_missing: AtomicBool::new(false) })
    }

    /// Costs one look at the directory: little beside a commit. It opens nothing, because closing it would take SQLite's locks away.
    pub fn check(&self) -> StoreResult<()> {
        let is_missing = match std::fs::metadata(&self.path) {
            Ok(found) => identity(&found) != self.identity,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_missing != self.is_missing.swap(is_missing, Ordering::Relaxed) {
            self.tell(is_missing);
        }
        if is_missing { Err(StoreError::Full(NOT_IN_PLACE.to_owned())) } else { Ok(()) }
    }

    fn tell(&self, is_missing: bool) {
        let path = self.path.display();
        if is_missing {
            tracing::error!(%path, "{NOT_IN_PLACE}; nothing is written any more; put that very file back, or stop and restore a backup");
        } else {
            tracing::info!(%path, "the database file is in its place again");
        }
    }
}

/// Device and inode.
#[cfg(unix)]
fn identity(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}
