use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::{ErrorCode, ffi};

/// Why a database could not be opened, in one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another timer process is using {}; stop it first, or give this one a file of its own", path.display())]
    InUse { path: PathBuf },
    #[error("{} has {names} names (hard links), so that two processes could use it at once; remove all but one of them", path.display())]
    ManyNames { path: PathBuf, names: u64 },
    #[error("{} cannot be opened because the directory {} does not exist; create it first", path.display(), directory.display())]
    NoDirectory { path: PathBuf, directory: PathBuf },
    #[error("{} cannot be opened: {cause}; check that the path is right and that this user may write there", path.display())]
    NotAllowed { path: PathBuf, cause: io::Error },
    #[error("{} is not a timer database and was left untouched; give the path of another file", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} is missing or empty, but its log {} still holds data; put the database back, or move the log away to start afresh",
        path.display(),
        log.display()
    )]
    LogWithoutDatabase { path: PathBuf, log: PathBuf },
    #[error(
        "{} and the log {} beside it do not belong together: the file was replaced after that log was written, and was left as it is; \
         bring a backup back with `timer restore --replace`, or move the log away to go on with the file alone",
        path.display(),
        log.display()
    )]
    LogOfAnother { path: PathBuf, log: PathBuf },
    #[error("{} is damaged ({cause}) and was left as it is; restore it from a backup", path.display())]
    Damaged { path: PathBuf, cause: String },
    #[error("{} has schema version {version}, which a newer timer wrote; use that one", path.display())]
    Newer { path: PathBuf, version: i64 },
    #[error("{} was set up for {shards} shards, but a SQLite database has one; it was not written by this program", path.display())]
    OtherShards { path: PathBuf, shards: i64 },
    #[error("SQLite {found} is too old; this program needs 3.51.3 or later")]
    OldLibrary { found: String },
    #[error("{} cannot be opened: {cause}", path.display())]
    Failed { path: PathBuf, cause: String },
}

impl OpenError {
    /// What SQLite said of the database at this path.
    pub fn refused(path: &Path, cause: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        match cause.sqlite_error() {
            Some(ffi::Error { code: ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, .. }) => {
                Self::Damaged { path, cause: cause.to_string() }
            }
            _ => Self::Failed { path, cause: cause.to_string() },
        }
    }
}
