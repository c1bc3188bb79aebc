use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A wall clock for services that the test can set while they run. The monotonic clock is left alone. It must outlive them: without its
/// file they have the true time again.
pub struct FakeTime {
    library: PathBuf,
    offset: TempDir,
    moves: bool,
}

const HOW_TO_GET_IT: &str = "libfaketime is missing: install the package `libfaketime` (`make test` does)";

impl FakeTime {
    /// Begins with the true time.
    pub fn new() -> Self {
        Self::begin("+0", true)
    }

    /// Is off by this much and will not be set again, which is much cheaper for the service.
    pub fn fixed(offset: &str) -> Self {
        Self::begin(offset, false)
    }

    fn begin(offset: &str, moves: bool) -> Self {
        let time = Self { library: library(), offset: tempfile::tempdir().expect("a temporary directory"), moves };
        time.write(offset);
        time
    }

    /// From now on the clock is off by this much: `-1h`, `+1d`.
    pub fn set(&self, offset: &str) {
        assert!(self.moves, "a fixed offset cannot be set");
        self.write(offset);
    }

    fn write(&self, offset: &str) {
        // Renamed into place, because a service may read it at any moment.
        let new = self.offset.path().join("new");
        std::fs::write(&new, format!("{offset}\n")).expect("a file in a temporary directory");
        std::fs::rename(new, self.file()).expect("a file in a temporary directory");
    }

    /// What a service must have in its environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            ("FAKETIME_NO_CACHE", if self.moves { "1" } else { "0" }.to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn file(&self) -> PathBuf {
        self.offset.path().join("offset")
    }
}

/// Debian keeps it in a directory of the architecture. It must be the variant for many threads: in the other one a thread that
/// reads the offset anew lets another see the true time for a moment.
fn library() -> PathBuf {
    let of_architectures = Path::new("/usr/lib").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    of_architectures
        .chain([PathBuf::from("/usr/lib"), PathBuf::from("/usr/lib64"), PathBuf::from("/usr/local/lib")])
        .map(|directory| directory.join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists())
        .expect(HOW_TO_GET_IT)
}
