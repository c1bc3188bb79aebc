//! Whether a log belongs to the file it lies beside.
//!
//! SQLite lays a log over whatever file has the right name: a backup that is copied over the database of a process that died would be
//! corrupted by the log which that process left. So the header of the database holds a number. A commit raises it by one when a
//! checkpoint has changed the file since the commit before; all other commits leave it as it is, because a write of the header costs as
//! much as a tenth of a create. A log holds the header as its commits left it:
//!
//! ```text
//!   commits   a   b   c   d   e   f     checkpoints ended at a (then the log started over) and at d
//!   number   16  17  17  17  18  18
//!   log           b ─────────────▶ f     numbers 17 and 18
//!   database  16                        nothing of the log is in the file yet
//!   database              17            copied up to there when the process died
//!   database  12, 5000                  another file, or an older copy: what the log leaves out is missing in it
//! ```
//!
//! Why that is enough: the file changes only in checkpoints, and stands at some commit after each of them. The commit that follows has
//! another number, so that two states of the file never have the same one. A log starts over only after a checkpoint, so that its
//! first commit has a number, and the file that it continues has the one before. While the checkpoint thread copies, it is not known at
//! which commit it will stop, and every commit is numbered. A checkpoint by another program is noticed at the next commit, by the time
//! at which the file was last written; two of them during one commit are not told apart.
//!
//! Copies that SQLite makes (the online backup, `VACUUM INTO`) show the state of any commit, and keep the number. They are known by
//! the schema version, which each start sets at random: the online backup starts it anew, and `VACUUM INTO` raises it.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::Path,
};

use rusqlite::Connection;

/// The offset of the number in the database: SQLite calls it the user version.
const COMMIT_OFFSET: usize = 60;
const SCHEMA_OFFSET: usize = 40;
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const DATABASE_HEADER_BYTES: usize = 100;
/// One of the two that SQLite writes; the other one is odd.
const LOG_MAGIC: u32 = 0x377f_0682;

/// What the header of a database tells of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    commit: i32,
    /// Rises with each change of the schema.
    schema: u32,
}

/// What the online backup writes as the schema version of a copy.
const SCHEMA_OF_A_COPY: u32 = 1;
/// The maximum rise of the schema version within one log: more than all migrations together take.
const SCHEMA_CHANGES_MAX: u32 = 1000;

impl Stamp {
    fn of(header: &[u8; DATABASE_HEADER_BYTES]) -> Self {
        Self { commit: number(header, COMMIT_OFFSET).cast_signed(), schema: number(header, SCHEMA_OFFSET) }
    }

    /// Whether the schema may have become that of `later`, by migrations or by an operator.
    const fn may_become(self, later: Self) -> bool {
        later.schema.wrapping_sub(self.schema) <= SCHEMA_CHANGES_MAX
    }
}

/// The number that follows this one.
pub const fn next(commit: i32) -> i32 {
    commit.wrapping_add(1)
}

/// Whether the number is one of those from `first` to `last`.
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

/// Whether this is a copy by the online backup that has not been used yet.
pub fn is_copy(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA schema_version", [], |row| Ok(row.get::<_, i64>(0)? == i64::from(SCHEMA_OF_A_COPY)))
}

/// As a part of the transaction that it numbers.
pub fn write(connection: &Connection, commit: i32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", commit)
}

/// Goes on with a number and a schema version of this start alone, so that no other file and no older copy comes to the same ones. Two
/// commits, because a log may begin with the first of them.
pub fn begin(connection: &Connection) -> rusqlite::Result<i32> {
    write(connection, next(read(connection)?))?;
    let commit = renew(connection)?;
    // Not a small number, which is what other files have. Nothing has a statement prepared yet that would rely on the old one.
    let [schema, _] = random(connection)?;
    connection.pragma_update(None, "schema_version", schema & i32::MAX | 1 << 30)?;
    Ok(commit)
}

/// A number that is in no log.
pub fn renew(connection: &Connection) -> rusqlite::Result<i32> {
    let [commit, _] = random(connection)?;
    write(connection, commit)?;
    Ok(commit)
}

fn random(connection: &Connection) -> rusqlite::Result<[i32; 2]> {
    let random: i64 = connection.query_row("SELECT random()", [], |row| row.get(0))?;
    let [a, b, c, d, e, f, g, h] = random.to_be_bytes();
    Ok([i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h])])
}

/// Whether the log can be laid over the database: reads both without SQLite, which would do so at once.
pub fn belong_together(database: &Path, log: &Path) -> io::Result<bool> {
    let mut header = [0; DATABASE_HEADER_BYTES];
    File::open(database)?.read_exact(&mut header)?;
    let stamps = match File::open(log) {
        Ok(log) => stamps(BufReader::new(log))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(is_of(&stamps, Stamp::of(&header)))
}

/// `stamps` are those of the log, in its order. Without any it is empty, or of a version that wrote no numbers.
fn is_of(stamps: &[Stamp], database: Stamp) -> bool {
    let Some(first) = stamps.first() else { return true };
    // A copy by the online backup, beside a log that no such copy has written: the first commit of one shows what it was. The schema
    // versions of the version before are low numbers, too, so that their distance does not tell.
    if database.schema == SCHEMA_OF_A_COPY && !stamps.iter().any(|stamp| stamp.schema == SCHEMA_OF_A_COPY) {
        return false;
    }
    let is_in_log = |stamp: &Stamp| stamp.commit == database.commit && database.may_become(*stamp);
    (next(database.commit) == first.commit && database.may_become(*first)) || stamps.iter().any(is_in_log)
}

/// The stamps in the frames of the first page: those that were written since the log last started over.
fn stamps(mut log: impl Read + Seek) -> io::Result<Vec<Stamp>> {
    let mut stamps = Vec::new();
    let mut header = [0; LOG_HEADER_BYTES];
    if !fill(&mut log, &mut header)? || number(&header, 0) & !1 != LOG_MAGIC {
        return Ok(stamps);
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
            stamps.push(Stamp::of(&page));
            read = DATABASE_HEADER_BYTES as i64;
        }
        log.seek_relative(page_bytes - read)?;
    }
    Ok(stamps)
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
        const SCHEMA: u32 = 1 << 30;
        let stamp = |commit, schema| Stamp { commit, schema };
        let log = [stamp(17, SCHEMA), stamp(17, SCHEMA), stamp(18, SCHEMA), stamp(19, SCHEMA)];
        for (database, belongs) in [
            (stamp(16, SCHEMA), true),
            (stamp(17, SCHEMA), true),
            (stamp(19, SCHEMA), true),
            (stamp(15, SCHEMA), false),
            (stamp(20, SCHEMA), false),
            (stamp(0, SCHEMA), false),
            // Copies that were made by the online backup.
            (stamp(16, 1), false),
            (stamp(17, 1), false),
            // Copies that were made by `VACUUM INTO`.
            (stamp(16, SCHEMA + 1), false),
            (stamp(18, SCHEMA + 1), false),
        ] {
            assert_eq!(is_of(&log, database), belongs, "{database:?}");
        }
        assert!(is_of(&[], stamp(5, 30)), "an empty log belongs to every file");
        assert!(is_of(&[stamp(0, 34)], stamp(0, 30)), "a migration of a database without numbers");
        assert!(is_of(&[stamp(17, 1), stamp(18, 1)], stamp(17, 1)), "a log that was written by a copy in use");
        assert!(is_of(&[stamp(17, 1), stamp(18, 4)], stamp(16, 1)), "a migration of a copy");
        for log in [&[stamp(0, 30)][..], &[stamp(17, 30), stamp(18, 30)]] {
            for commit in [0, 16, 17, 18] {
                assert!(!is_of(log, stamp(commit, 1)), "a log of the version before, and a copy at {commit}");
            }
        }
        assert!(is_of(&[stamp(17, 4), stamp(5000, SCHEMA)], stamp(17, 4)), "a start that was interrupted");
        assert!(is_of(&[stamp(i32::MIN, 30)], stamp(i32::MAX, 30)), "numbers begin again");
    }
}
