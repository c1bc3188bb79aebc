//! A copy of the database, made while the service runs or while it does not.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
    ffi,
};

use crate::{
    connection::{self, Role},
    files::{beside, create_for_service, directory_of, private},
    lock::Lock,
    open::{self, Found},
    open_error::OpenError,
    stamp,
};

/// Why there is no backup, in one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{} exists already and was left as it is; give another name, or remove it first", path.display())]
    Exists { path: PathBuf },
    #[error("there is no database at {}", path.display())]
    NoDatabase { path: PathBuf },
    #[error(transparent)]
    Database(#[from] OpenError),
    #[error("{} is damaged ({cause}), and nothing was kept; check the database with `PRAGMA integrity_check`", path.display())]
    Damaged { path: PathBuf, cause: String },
    #[error("{} cannot be written: {cause}", path.display())]
    NotWritten { path: PathBuf, cause: io::Error },
    #[error("{} cannot be copied: {cause}", path.display())]
    NotCopied { path: PathBuf, cause: rusqlite::Error },
}

/// Copies the database at `path` into a new file: all that was committed when the copy began. What appears under the name `to` is whole,
/// checked and on disk.
pub fn backup(path: &Path, to: &Path) -> Result<(), BackupError> {
    open::check_library()?;
    let path = open::resolve(path)?;
    if fs::symlink_metadata(to).is_ok() {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    // Nothing else checks the log of a database that is not in use; in one that is, file and log change all the time.
    let held = match Lock::take(&path) {
        Ok(lock) => Some(lock),
        Err(OpenError::InUse { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    match open::look_at(&path)? {
        Found::Nothing => return Err(BackupError::NoDatabase { path }),
        Found::Foreign => return Err(OpenError::Foreign { path }.into()),
        Found::Ours if held.is_some() => open::check_log(&path)?,
        Found::Ours => {}
    }
    let access = if held.is_some() { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let source = Connection::open_with_flags(&path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|cause| BackupError::NotCopied { path: path.clone(), cause })?;

    let not_written = |cause| BackupError::NotWritten { path: to.to_owned(), cause };
    let draft = Draft::create(to).map_err(not_written)?;
    let mut copy =
        connection::open(&draft.path, Role::SetUp).map_err(|cause| BackupError::NotCopied { path: to.to_owned(), cause })?;
    copy_whole(&source, &mut copy).map_err(|cause| BackupError::NotCopied { path: path.clone(), cause })?;
    make_alone(&copy).map_err(|cause| BackupError::NotCopied { path: to.to_owned(), cause })?;
    check(&copy).map_err(|cause| BackupError::Damaged { path: path.clone(), cause })?;
    copy.close().map_err(|(_, cause)| BackupError::NotCopied { path: to.to_owned(), cause })?;
    // An empty file is without damage, too.
    if !matches!(open::look_at(&draft.path)?, Found::Ours) {
        return Err(BackupError::Damaged { path, cause: "its copy is not a timer database".to_owned() });
    }
    draft.put_at(to).and_then(|()| sync_directory(to)).map_err(not_written)
}

/// In one step, which is one snapshot: in several, each commit of the service would make the copy begin anew.
fn copy_whole(source: &Connection, copy: &mut Connection) -> rusqlite::Result<()> {
    const ALL_PAGES: std::ffi::c_int = -1;
    match Backup::new(source, copy)?.step(ALL_PAGES)? {
        StepResult::Done => Ok(()),
        // Nothing was copied, or not all of it.
        _ => {
            let reason = "the database is locked; try again".to_owned();
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), Some(reason)))
        }
    }
}

/// Makes a copy one file that needs no other and that no log belongs to.
pub fn make_alone(copy: &Connection) -> rusqlite::Result<()> {
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    stamp::renew(copy).map(|_| ())
}

/// What is wrong with it, if anything is.
pub fn check(copy: &Connection) -> Result<(), String> {
    let found: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(|error| error.to_string())?;
    if found == "ok" { Ok(()) } else { Err(found.replace('\n', " ")) }
}

/// A file that is not in its place yet. Dropping it removes it.
pub struct Draft {
    pub path: PathBuf,
}

impl Draft {
    pub fn create(place: &Path) -> io::Result<Self> {
        Self::create_by(place, |path| private().create_new(true).open(path))
    }

    /// One that the service must be able to open under its later name.
    pub fn of_database(place: &Path) -> io::Result<Self> {
        Self::create_by(place, create_for_service)
    }

    fn create_by(place: &Path, create: impl FnOnce(&Path) -> io::Result<File>) -> io::Result<Self> {
        let path = beside(place, &format!(".{}.new", std::process::id()));
        // A process that died may have left one. A link is not followed: what it leads to is not this program's to write.
        remove_draft(&path);
        create(&path)?;
        Ok(Self { path })
    }

    /// On disk first, then under its name, which [`sync_directory`] makes last.
    pub fn put_at(self, place: &Path) -> io::Result<()> {
        private().open(&self.path)?.sync_all()?;
        fs::rename(&self.path, place)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove_draft(&self.path);
    }
}

fn remove_draft(path: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Mostly there is none.
        drop(fs::remove_file(beside(path, suffix)));
    }
}

/// So that a name that was changed in it stays changed.
pub fn sync_directory(place: &Path) -> io::Result<()> {
    File::open(directory_of(place))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_draft_is_not_written_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("copy.db");
        let other = directory.path().join("other");
        fs::write(&other, "of another").unwrap();
        std::os::unix::fs::symlink(&other, beside(&place, &format!(".{}.new", std::process::id()))).unwrap();

        let draft = Draft::create(&place).unwrap();
        fs::write(&draft.path, "draft").unwrap();
        draft.put_at(&place).unwrap();

        assert_eq!(fs::read(&other).unwrap(), b"of another");
        assert_eq!(fs::read(&place).unwrap(), b"draft");
    }

    #[test]
    fn a_locked_database_is_not_taken_for_copied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source.db");
        let owner = Connection::open(&path).unwrap();
        owner.execute_batch("CREATE TABLE t (content BLOB); BEGIN EXCLUSIVE").unwrap();
        let source = Connection::open(&path).unwrap();
        source.busy_timeout(std::time::Duration::ZERO).unwrap();
        let mut copy = Connection::open_in_memory().unwrap();

        let refused = copy_whole(&source, &mut copy).unwrap_err().to_string();
        assert_eq!(refused, "the database is locked; try again");

        owner.execute_batch("COMMIT").unwrap();
        copy_whole(&source, &mut copy).unwrap();
        copy.execute("INSERT INTO t VALUES (1)", []).unwrap();
    }
}
