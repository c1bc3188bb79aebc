//! The temporary directories that servers live in.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// Followed by the kind of server, its owner's process id and a random part: see `remove_leftovers`.
const PREFIX: &str = "throwaway-";

/// A fresh directory for a server of this `kind`, removed when it is dropped.
pub fn make(kind: &str) -> TempDir {
    let prefix = format!("{PREFIX}{kind}-");
    remove_leftovers(&std::env::temp_dir(), &prefix);
    tempfile::Builder::new()
        .prefix(&format!("{prefix}{}-", std::process::id()))
        .tempdir()
        .expect("no temporary directory could be made for a server")
}

/// Removes the directories of processes that ended without dropping their server.
///
/// A process id that is in use again only delays the removal.
fn remove_leftovers(temporary: &Path, prefix: &str) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix)).and_then(|rest| rest.split('-').next());
        let Some(owner) = owner.and_then(|digits| digits.parse::<u32>().ok()) else { continue };
        if !Path::new("/proc").join(owner.to_string()).exists() {
            // Another process may be removing the directory at the same moment, or it may belong to another user.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_removed() {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        let make = |name: String| {
            let path = temporary.path().join(name);
            fs::create_dir_all(path.join("data")).expect("a directory");
            path
        };
        // Above the largest process id Linux can hand out.
        let dead = make("throwaway-postgres-4194305-abc".into());
        let living = make(format!("throwaway-postgres-{}-abc", std::process::id()));
        let other_kind = make("throwaway-nats-4194305-abc".into());
        let foreign = make("something-else-4194305-abc".into());

        remove_leftovers(temporary.path(), "throwaway-postgres-");

        assert!(!dead.exists());
        assert!(living.exists());
        assert!(other_kind.exists());
        assert!(foreign.exists());
    }
}
