use std::{path::Path, process::Command};

/// Where scripts/setup.sh puts the packages.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/python");
/// Where the tests, and what they run, stand.
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e");

/// Python with the packages that tests use, and with the modules in a directory beside the tests. It is told nothing of proxies
/// or of anything else that stands in the environment.
pub fn python(directory: &str) -> Command {
    assert!(
        Path::new(PACKAGES).join("installed").exists(),
        "no Python packages in target/tools: run scripts/setup.sh, then the tests again"
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    let modules = std::env::join_paths([Path::new(TESTS).join(directory), PACKAGES.into()]).expect("paths without colons");
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", path).env("PYTHONPATH", modules).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUTF8", "1");
    command
}

/// A file in a directory beside the tests.
pub fn beside_the_tests(file: &str) -> std::path::PathBuf {
    Path::new(TESTS).join(file)
}
