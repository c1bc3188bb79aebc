//! How long the disk takes to sync 4 KiB: the lower bound of every acknowledged write.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, time::Duration};

use domain::Clock;

use crate::{machine::filesystem, percentiles::Percentiles, record::Disk};

const PAGE_BYTES: usize = 4 * 1024;
/// The pages are written beforehand, so that no write has to allocate space.
const PAGES: u64 = 256;

/// Overwrites and syncs pages of a temporary file for as long as `time`.
pub fn probe(directory: &Path, time: Duration, clock: &dyn Clock) -> io::Result<Disk> {
    let file = tempfile::tempfile_in(directory)?;
    let page = [0x5a; PAGE_BYTES];
    let write = |n: u64, file: &File| file.write_all_at(&page, n % PAGES * PAGE_BYTES as u64);
    for n in 0..PAGES {
        write(n, &file)?;
    }
    file.sync_all()?;
    let began = clock.monotonic();
    let (mut took, mut last) = (Vec::new(), began);
    while last.saturating_sub(began) < time {
        write(took.len() as u64, &file)?;
        file.sync_data()?;
        let now = clock.monotonic();
        took.push(i64::try_from(now.saturating_sub(last).as_micros()).unwrap_or(i64::MAX));
        last = now;
    }
    Ok(Disk {
        directory: directory.display().to_string(),
        filesystem: filesystem(directory),
        writes_per_second: took.len() as f64 / last.saturating_sub(began).as_secs_f64(),
        write: Percentiles::of(took).unwrap_or_default(),
    })
}
