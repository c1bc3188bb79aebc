//! Whether a log belongs to the file it lies beside.
//!
//! SQLite lays a log over whatever file has the right name: a backup that is copied over the database of a process that died would be
//! torn to pieces by the log which that one left. So every commit that changes anything writes a number into the header of the database,
//! one more than the commit before; each start begins at another one. A log holds the header as each of its commits left it:
//!
//! ```text
//!   log          17  18  19          of its commits
//!   database  16                     nothing of the log is in the file yet
//!   database         18              copied up to there when the process died
//!   database  12, 5000               another file, or an older copy: what the log leaves out is missing in it
//! ```

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::Path,
};

use rusqlite::Connection;

/// Where the number stands in the database: SQLite calls it the user version.
const COMMIT_OFFSET: usize = 60;
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const DATABASE_HEADER_BYTES: usize = 100;
/// One of the two that SQLite knows; the other one is odd.
const LOG_MAGIC: u32 = 0x377f_0682;

/// What the header of a database tells of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    commit: i32,
    /// Rises with each change of the schema. The online backup starts it anew in a new file.
    schema: u32,
}

/// The schema of such a file. No set-up is that short.
const SCHEMA_OF_A_COPY: u32 = 1;

impl Stamp {
    fn of(header: &[u8; DATABASE_HEADER_BYTES]) -> Self {
        Self { commit: number(header, COMMIT_OFFSET).cast_signed(), schema: number(header, 40) }
    }
}

/// The number of the commit that follows this one.
pub const fn next(commit: i32) -> i32 {
    commit.wrapping_add(1)
}

/// Whether the commit is one of those from `first` to `last`.
pub const fn is_between(first: i32, last: i32, commit: i32) -> bool {
    commit.wrapping_sub(first).cast_unsigned() <= last.wrapping_sub(first).cast_unsigned()
}

/// The number in an open file, without SQLite. It may be older than the last commit, which is in the log.
#[cfg(unix)]
pub fn read_file(file: &File) -> io::Result<Option<i32>> {
    use std::os::unix::fs::FileExt;
    let mut commit = [0; 4];
    file.read_exact_at(&mut commit, COMMIT_OFFSET as u64)?;
    Ok(Some(i32::from_be_bytes(commit)))
}

#[cfg(not(unix))]
pub fn read_file(_: &File) -> io::Result<Option<i32>> {
    Ok(None)
}

/// The number of the last commit, as this connection sees it.
pub fn read(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// As a part of the transaction that it numbers.
pub fn write(connection: &Connection, commit: i32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", commit)
}

/// Goes on with a number of this start alone, so that no other file and no older copy comes to the same ones. Two commits, because a log
/// may begin with the first of them.
pub fn begin(connection: &Connection) -> rusqlite::Result<i32> {
    write(connection, next(read(connection)?))?;
    renew(connection)
}

/// A number that no log knows.
pub fn renew(connection: &Connection) -> rusqlite::Result<i32> {
    let random: i64 = connection.query_row("SELECT random()", [], |row| row.get(0))?;
    let [a, b, c, d, ..] = random.to_be_bytes();
    let commit = i32::from_be_bytes([a, b, c, d]);
    write(connection, commit)?;
    Ok(commit)
}

/// Whether the log can be laid over the database: reads both without SQLite, which would do so at once.
pub fn belong_together(database: &Path, log: &Path) -> io::Result<bool> {
    let mut header = [0; DATABASE_HEADER_BYTES];
    File::open(database)?.read_exact(&mut header)?;
    let commits = match File::open(log) {
        Ok(log) => commits(BufReader::new(log))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(is_of(&commits, Stamp::of(&header)))
}

/// `commits` are those of the log, in its order. Without any it is empty, or of a version that wrote no numbers.
fn is_of(commits: &[Stamp], database: Stamp) -> bool {
    let Some(first) = commits.first() else { return true };
    if next(database.commit) == first.commit {
        return true;
    }
    // A copy that was made while this log was written has one of its numbers, too. With the log it would become the newest state, which
    // is not what its owner wants.
    let is_a_copy = database.schema == SCHEMA_OF_A_COPY && commits.iter().all(|stamp| stamp.schema != database.schema);
    commits.iter().any(|stamp| stamp.commit == database.commit) && !is_a_copy
}

/// The stamps in the first page's frames: those that were written since the log last started over.
fn commits(mut log: impl Read + Seek) -> io::Result<Vec<Stamp>> {
    let mut commits = Vec::new();
    let mut header = [0; LOG_HEADER_BYTES];
    if !fill(&mut log, &mut header)? || number(&header, 0) & !1 != LOG_MAGIC {
        return Ok(commits);
    }
    let page_bytes = i64::from(number(&header, 8));
    let mut frame = [0; FRAME_HEADER_BYTES];
    while fill(&mut log, &mut frame)? && frame[8..16] == header[16..24] {
        let mut read = 0;
        if number(&frame, 0) == 1 {
            let mut page = [0; DATABASE_HEADER_BYTES];
            if !fill(&mut log, &mut page)? {
                break;
            }
            commits.push(Stamp::of(&page));
            read = DATABASE_HEADER_BYTES as i64;
        }
        log.seek_relative(page_bytes - read)?;
    }
    Ok(commits)
}

/// `false` at the end, which may be torn.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_this_start_is_known_by_its_number() {
        for (first, last, commit, is_of_this_start) in [
            (10, 10, 10, true),
            (10, 12, 12, true),
            (10, 12, 13, false),
            (10, 12, 9, false),
            (i32::MAX, i32::MIN, i32::MIN, true),
            (i32::MAX, i32::MIN, 0, false),
        ] {
            assert_eq!(is_between(first, last, commit), is_of_this_start, "{first}..={last} {commit}");
        }
    }

    #[test]
    fn a_log_belongs_to_the_state_it_began_with_and_to_those_it_led_to() {
        let stamp = |commit, schema| Stamp { commit, schema };
        let log = [stamp(17, 30), stamp(18, 30), stamp(19, 30)];
        for (database, belongs) in [
            (stamp(16, 30), true),
            (stamp(17, 30), true),
            (stamp(19, 30), true),
            (stamp(15, 30), false),
            (stamp(20, 30), false),
            (stamp(0, 30), false),
            // A copy that was made by the online backup.
            (stamp(17, 1), false),
            (stamp(18, 1), false),
        ] {
            assert_eq!(is_of(&log, database), belongs, "{database:?}");
        }
        assert!(is_of(&[], stamp(5, 30)), "an empty log belongs to every file");
        assert!(is_of(&[stamp(0, 34)], stamp(0, 30)), "a migration of a database without numbers");
        assert!(is_of(&[stamp(17, 1), stamp(18, 1)], stamp(17, 1)), "a log that was written by a copy in use");
        assert!(is_of(&[stamp(17, 4)], stamp(16, 1)), "a migration of a copy");
        assert!(is_of(&[stamp(i32::MIN, 30)], stamp(i32::MAX, 30)), "numbers begin again");
    }
}
