//! The files of a database.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
};

/// The file beside a database whose name ends with this.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Payloads and headers hold secrets: what is created is for its owner alone. SQLite gives its log the same rights.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}
