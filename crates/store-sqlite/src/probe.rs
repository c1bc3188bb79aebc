//! Whether the disk takes writes again.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::Cause;
use rusqlite::Connection;
use store::StoreError;

use crate::{
    failure::Failure,
    files::{beside, private},
    tally::Tally,
    writer::Write,
};

/// The number of bytes that are written to test for free space: the size of the largest payload.
const SPACE_BYTES: usize = domain::limits::PAYLOAD_BYTES_MAX;

/// A commit that changes next to nothing is a page in the log, for which there is nearly always space. So this takes more first, in a
/// file beside the database, which is removed at once.
pub struct Probe {
    pub database: PathBuf,
}

impl Write for Probe {
    type Answer = ();
    const NAME: &'static str = "probe";

    fn rows(&self) -> usize {
        1
    }

    fn run(&self, connection: &Connection, _: &mut Tally) -> Result<(), Failure> {
        take_space(&beside(&self.database, ".probe")).map_err(|error| Failure(StoreError::Full(Cause::of(error))))?;
        // SQLite writes no page whose content stays the same. So this changes an epoch, and then changes it back.
        for _ in 0..2 {
            connection.prepare_cached("UPDATE shard SET epoch = -1 - epoch")?.execute([])?;
        }
        Ok(())
    }
}

fn take_space(file: &Path) -> io::Result<()> {
    // One that was left is removed first. A link is not followed: what it leads to is not this program's to write.
    drop(fs::remove_file(file));
    let taken = private().create_new(true).open(file).and_then(|mut file| {
        io::Write::write_all(&mut file, &[0; SPACE_BYTES])?;
        file.sync_all()
    });
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => taken.and(Err(error)),
        _ => taken,
    }
}
