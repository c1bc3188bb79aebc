//! The file: who may open it, what it must be, and how a new one comes to be.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use domain::Timestamp;
use rusqlite::Connection;

use crate::{
    checkpoint,
    connection::{self, Role},
    default_index,
    files::{beside, directory_of, private},
    lock::Lock,
    migrate::{self, Schema},
    open_error::OpenError,
    stamp,
};

/// Versions before 3.51.3 can damage a database whose log is checkpointed while it is written.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_ID_OFFSET: usize = 68;

/// A database that no other process can open, with its schema up to date.
pub struct Opened {
    pub path: PathBuf,
    pub writer: Connection,
    /// The number in its header: see [`stamp`].
    pub commit: i32,
    pub lock: Lock,
    pub has_default_index: bool,
}

pub fn open(path: &Path, now: Timestamp) -> Result<Opened, OpenError> {
    check_library()?;
    let path = resolve(path)?;
    let mut lock = Lock::take(&path)?;
    match look_at(&path)? {
        Found::Nothing => {
            set_up(&path, now)?;
            lock.take_database(&path)?;
        }
        Found::Ours => check_log(&path)?,
        Found::Foreign => return Err(OpenError::Foreign { path }),
    }
    let refused = |cause: rusqlite::Error| OpenError::refused(&path, &cause);
    let mut writer = connection::open(&path, Role::Writer).map_err(refused)?;
    migrate(&path, &mut writer, now)?;
    let has_default_index = default_index::build_at_start(&writer).map_err(refused)?;
    // The lock proves that no other process lives that could own anything. Epochs stay, so that whatever an earlier
    // process claimed is known to be from before.
    writer.execute("UPDATE shard SET owner = NULL", []).map_err(refused)?;
    let commit = stamp::begin(&writer).map_err(refused)?;
    checkpoint::start_over(&writer);
    Ok(Opened { path, writer, commit, lock, has_default_index })
}

/// Before SQLite sees either of them.
pub fn check_log(path: &Path) -> Result<(), OpenError> {
    let log = beside(path, "-wal");
    match stamp::belong_together(path, &log) {
        Ok(true) => Ok(()),
        Ok(false) => Err(OpenError::LogOfAnother { path: path.to_owned(), log }),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(OpenError::Damaged { path: path.to_owned(), cause: "its header is cut off".to_owned() })
        }
        Err(cause) => Err(OpenError::NotAllowed { path: path.to_owned(), cause }),
    }
}

pub fn check_library() -> Result<(), OpenError> {
    match rusqlite::version_number() {
        number if number >= SQLITE_VERSION_MIN => Ok(()),
        _ => Err(OpenError::OldLibrary { found: rusqlite::version().to_owned() }),
    }
}

/// One name for the file, however it was written.
pub fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let not_allowed = |cause| OpenError::NotAllowed { path: path.to_owned(), cause };
    match fs::canonicalize(path) {
        Ok(path) => return Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(not_allowed(error)),
    }
    let directory = directory_of(path);
    let name = path.file_name().ok_or_else(|| not_allowed(io::ErrorKind::InvalidFilename.into()))?;
    match fs::canonicalize(directory) {
        Ok(directory) => Ok(directory.join(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::NoDirectory { path: path.to_owned(), directory: directory.to_owned() })
        }
        Err(error) => Err(not_allowed(error)),
    }
}

pub enum Found {
    Nothing,
    Ours,
    Foreign,
}

/// Reads the header without SQLite, which might change a foreign file only by looking at it.
pub fn look_at(path: &Path) -> Result<Found, OpenError> {
    let not_allowed = |cause| OpenError::NotAllowed { path: path.to_owned(), cause };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    match File::open(path) {
        Ok(file) => {
            file.take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(not_allowed)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(not_allowed(error)),
    }
    let application_id = header.get(APPLICATION_ID_OFFSET..APPLICATION_ID_OFFSET + 4);
    if header.is_empty() {
        let log = beside(path, "-wal");
        match fs::metadata(&log) {
            Ok(found) if found.len() > 0 => Err(OpenError::LogWithoutDatabase { path: path.to_owned(), log }),
            _ => Ok(Found::Nothing),
        }
    } else if header.starts_with(MAGIC) && application_id == Some(&migrate::APPLICATION_ID.to_be_bytes()) {
        Ok(Found::Ours)
    } else {
        Ok(Found::Foreign)
    }
}

/// Makes the database beside its place and moves it there once it is whole: whatever stops this half-way leaves
/// nothing that could be taken for a database.
fn set_up(path: &Path, now: Timestamp) -> Result<(), OpenError> {
    let not_allowed = |cause| OpenError::NotAllowed { path: path.to_owned(), cause };
    let draft = beside(path, ".new");
    for left_over in [draft.clone(), beside(&draft, "-journal")] {
        match fs::remove_file(left_over) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(not_allowed(error)),
            _ => {}
        }
    }
    private().create_new(true).open(&draft).map_err(not_allowed)?;
    let refused = |cause: rusqlite::Error| OpenError::refused(path, &cause);
    let mut connection = connection::open(&draft, Role::SetUp).map_err(refused)?;
    migrate(path, &mut connection, now)?;
    connection.close().map_err(|(_, cause)| refused(cause))?;
    fs::rename(&draft, path).map_err(not_allowed)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(not_allowed)
}

fn migrate(path: &Path, connection: &mut Connection, now: Timestamp) -> Result<(), OpenError> {
    let path = path.to_owned();
    match migrate::migrate(connection, now) {
        Ok(Schema::Current) => Ok(()),
        Ok(Schema::Newer { version }) => Err(OpenError::Newer { path, version }),
        Ok(Schema::OtherShards { shards }) => Err(OpenError::OtherShards { path, shards }),
        Err(cause) => Err(OpenError::refused(&path, &cause)),
    }
}
