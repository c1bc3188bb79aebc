//! The files of a database.

use std::{
    fs::{File, OpenOptions},
    io,
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

/// Creates a file beside the database. One that root creates belongs to the owner of the directory: the service that must open it later
/// runs as that user, and the file is for its owner alone. Only a new file is given away, so that a link which that user puts there
/// gains nothing.
pub fn create_for_service(path: &Path) -> io::Result<File> {
    let file = private().create_new(true).open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let owner = std::fs::metadata(directory_of(path))?;
        if file.metadata()?.uid() == 0 && owner.uid() != 0 {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    Ok(file)
}

pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
