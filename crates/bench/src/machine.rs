//! The machine on which the results were measured.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

use crate::processes::kibibytes;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
}

impl Machine {
    /// The machine on which this process runs.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: cpu_model(&read("/proc/cpuinfo")).unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map(usize::from).unwrap_or(1),
            memory_bytes: kibibytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or_default() * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// The kind of file system that holds `directory`: on some of them, a sync does not reach a disk.
pub fn filesystem(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    parse_filesystem(&fs::read_to_string("/proc/mounts").ok()?, &directory)
}

fn parse_filesystem(mounts: &str, directory: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let holding = mounted.filter(|(point, _)| directory.starts_with(point));
    holding.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_holds_a_directory() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\n";
        for (directory, kind) in [("/tmp/x", "tmpfs"), ("/tmpx", "ext4"), ("/", "ext4")] {
            assert_eq!(parse_filesystem(mounts, Path::new(directory)).as_deref(), Some(kind), "{directory}");
        }
    }

    #[test]
    fn the_model_of_the_cpu_stands_in_cpuinfo() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
