//! Finds the nats-server of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path at which scripts/setup.sh installs it.
const OF_THIS_CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/nats/bin/nats-server");
/// The environment variable that names a program to use instead.
const VARIABLE: &str = "NATS_SERVER_BIN";
const VERSION_MIN: (u32, u32) = (2, 10);

pub fn find() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        assert!(is_recent(&named), "{VARIABLE} names {}, which is no nats-server 2.10 or later", named.display());
        return named;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("nats-server"));
    std::iter::once(PathBuf::from(OF_THIS_CHECKOUT))
        .chain(on_path)
        .find(|program| is_recent(program))
        .expect("no nats-server 2.10 or later in target/tools or on PATH: run scripts/setup.sh, then the tests again")
}

fn is_recent(program: &Path) -> bool {
    let answer = Command::new(program).arg("--version").output();
    answer.is_ok_and(|output| version(&String::from_utf8_lossy(&output.stdout)).is_some_and(|version| version >= VERSION_MIN))
}

/// The major and minor version of `nats-server: v2.15.1`.
fn version(answer: &str) -> Option<(u32, u32)> {
    let mut numbers = answer.trim().strip_prefix("nats-server: v")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        for (answer, expected) in [
            ("nats-server: v2.15.1\n", Some((2, 15))),
            ("nats-server: v2.9.25", Some((2, 9))),
            ("nats-server: v2.12.0-preview.1", Some((2, 12))),
            ("gnatsd version 1.4.1", None),
            ("", None),
        ] {
            assert_eq!(version(answer), expected, "{answer:?}");
        }
        assert!((2, 9) < VERSION_MIN);
    }

    #[test]
    fn a_program_that_is_not_there_is_not_recent() {
        assert!(!is_recent(Path::new("/no/such/nats-server")));
    }
}
