//! Whether the database is still where the next start will look for it.
//!
//! A file that was deleted or replaced lives on for a process that has it open, and what that one writes goes with it. One that was
//! overwritten in its place is known by the number in its header, which is none of this start's: see [`stamp`].

use std::{
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::{Duration, SystemTime},
};

use store::{StoreError, StoreResult};

use crate::stamp;

/// Names no path, so that it can be shown to any client.
pub const NOT_IN_PLACE: &str = "the database file was deleted or replaced while the service uses it";

/// The file that is open, and where it was found.
pub struct Presence {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    is_missing: AtomicBool,
    /// Kept open: closing it would take SQLite's locks away.
    file: Arc<File>,
    /// What the file held at the start, should the log not have been copied into it then.
    at_open: Option<i32>,
    first: i32,
    last: AtomicI32,
    /// For good: a checkpoint may bring the number back, but not what was overwritten.
    is_overwritten: AtomicBool,
}

impl Presence {
    /// `commit` is the number that this start began with.
    pub fn of(file: Arc<File>, path: &Path, commit: i32) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(&file.metadata()?),
            is_missing: AtomicBool::new(false),
            at_open: stamp::read_file(&file)?,
            file,
            first: commit,
            last: AtomicI32::new(commit),
            is_overwritten: AtomicBool::new(false),
        })
    }

    /// Called before the commit: a checkpoint may have it in the file before the writer goes on.
    pub fn announce(&self, commit: i32) {
        self.last.store(commit, Ordering::SeqCst);
    }

    /// Then nothing of the log may go into it.
    pub fn is_overwritten(&self) -> bool {
        // What was seen once may have been read while it was written.
        if !self.is_overwritten.load(Ordering::Relaxed) && self.looks_overwritten() && self.looks_overwritten() {
            self.is_overwritten.store(true, Ordering::Relaxed);
        }
        self.is_overwritten.load(Ordering::Relaxed)
    }

    fn looks_overwritten(&self) -> bool {
        match stamp::read_file(&self.file) {
            // The file is read first, so that the last commit is not older than what is in it.
            Ok(Some(commit)) => {
                let is_of_this_start = stamp::is_between(self.first, self.last.load(Ordering::SeqCst), commit);
                let is_of_the_start_itself =
                    self.at_open.is_some_and(|at_open| stamp::is_between(at_open, stamp::next(at_open), commit));
                !is_of_this_start && !is_of_the_start_itself
            }
            Ok(None) => false,
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        }
    }

    /// Costs one look at the directory and one at the file: little beside a commit. It opens nothing, because closing it would take
    /// SQLite's locks away.
    /// Says when the file was last written, if the file system does.
    pub fn check(&self) -> StoreResult<Option<SystemTime>> {
        let found = std::fs::metadata(&self.path);
        let is_elsewhere = match &found {
            Ok(found) => identity(found) != self.identity,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let is_missing = is_elsewhere || self.is_overwritten();
        if is_missing != self.is_missing.swap(is_missing, Ordering::Relaxed) {
            self.tell(is_missing);
        }
        if is_missing { Err(StoreError::Full(NOT_IN_PLACE.into())) } else { Ok(found.and_then(|found| found.modified()).ok()) }
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

/// When the file was last written, as the file system says: that is how a checkpoint by another program is noticed.
#[derive(Debug, Default)]
pub struct LastWrite {
    at: Option<SystemTime>,
    /// When this was seen for the first time, by the monotonic clock.
    since: Duration,
    /// Whether any further write would have another time.
    is_settled: bool,
}

/// File systems note the time of a write by a clock that ticks every few milliseconds: two writes within one tick look like one.
const TICK_MAX: Duration = Duration::from_millis(100);
/// Some of them keep whole seconds, or even ones.
const COARSE_TICK_MAX: Duration = Duration::from_secs(2);

/// The longest tick of a file system that says `at`. A fine one says a whole second by chance, and is then looked at for longer.
fn tick_max(at: SystemTime) -> Duration {
    let is_whole = at.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|since| since.subsec_nanos() == 0);
    if is_whole { COARSE_TICK_MAX } else { TICK_MAX }
}

impl LastWrite {
    /// Whether the file may have been written since this was last asked.
    pub fn is_another(&mut self, at: Option<SystemTime>, now: Duration) -> bool {
        if at.is_none() || at != self.at {
            *self = Self { at, since: now, is_settled: false };
            return true;
        }
        let was_settled = self.is_settled;
        self.is_settled = now.saturating_sub(self.since) > at.map_or(COARSE_TICK_MAX, tick_max);
        !was_settled
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_noticed_even_within_the_tick_of_the_one_before() {
        let mut last = LastWrite::default();
        let at = |seconds: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 1));
        for (at, now_millis, is_another) in [
            (at(5), 0, true),
            (at(5), 1, true),
            // Not written since the tick was over, but perhaps since this was last asked.
            (at(5), 500, true),
            (at(5), 501, false),
            (at(5), 9_000, false),
            (at(6), 9_001, true),
            (at(6), 9_900, true),
            (at(6), 9_901, false),
            // Back, as when a copy takes the place of the file.
            (at(5), 9_902, true),
            // A file system that does not say.
            (None, 20_000, true),
            (None, 30_000, true),
        ] {
            assert_eq!(last.is_another(at, Duration::from_millis(now_millis)), is_another, "{at:?} at {now_millis}");
        }
    }

    #[test]
    fn a_file_system_that_keeps_whole_seconds_is_looked_at_for_longer() {
        let mut last = LastWrite::default();
        let at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(6));
        for (now_millis, is_another) in [(0, true), (500, true), (1_999, true), (2_001, true), (2_002, false), (9_000, false)] {
            assert_eq!(last.is_another(at, Duration::from_millis(now_millis)), is_another, "at {now_millis}");
        }
    }
}
