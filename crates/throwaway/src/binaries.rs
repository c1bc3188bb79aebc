//! Finds the PostgreSQL server programs of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

const NEEDED: [&str; 4] = ["initdb", "postgres", "pg_ctl", "psql"];
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";

/// The directory that holds all of the programs, from one and the same version.
#[derive(Debug)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    pub fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).filter_map(|directory| real_home(&directory));
        let directory = on_path.chain(debian_versions(Path::new(DEBIAN_ROOT))).find(|directory| is_complete(directory)).expect(
            "no PostgreSQL server programs on PATH or in /usr/lib/postgresql: install the package `postgresql` and run the tests again",
        );
        Self { directory }
    }

    pub fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }

    /// The major version, 15 of `initdb (PostgreSQL) 15.18`.
    pub fn major_version(&self) -> u32 {
        let output = Command::new(self.path("initdb")).arg("--version").output().expect("initdb could not be run");
        let text = String::from_utf8_lossy(&output.stdout);
        let digits = text.split_whitespace().find_map(|word| word.split(['.', 'd', 'b', 'r']).next()?.parse().ok());
        digits.expect("`initdb --version` names no version")
    }
}

/// The real directory of the `initdb` in this PATH entry: often only some programs are linked into a directory on PATH, while
/// the rest stand beside the original.
fn real_home(directory: &Path) -> Option<PathBuf> {
    let initdb = directory.join("initdb").canonicalize().ok()?;
    initdb.parent().map(Path::to_path_buf)
}

/// Debian has one directory per version and puts none of them on PATH. The newest comes first.
fn debian_versions(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, directory)| directory).collect()
}

fn is_complete(directory: &Path) -> bool {
    NEEDED.iter().all(|program| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for version in ["9", "17", "15", "not-a-version"] {
            std::fs::create_dir_all(root.path().join(version).join("bin")).expect("a directory");
        }
        let found = debian_versions(root.path());
        let expected: Vec<PathBuf> = ["17", "15", "9"].iter().map(|version| root.path().join(version).join("bin")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_directory_with_some_of_the_programs_is_not_enough() {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(root.path().join("initdb"), "").expect("a file");
        assert!(!is_complete(root.path()));
    }
}
