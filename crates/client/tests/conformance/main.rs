//! Runs sdks/conformance with this SDK: see the README there. It is started by `scripts/sdk_test.sh`, which prints the table.
#![expect(clippy::print_stdout, reason = "the lines are what the table is made of")]

mod arguments;
mod calls;
mod matching;
mod rig;
mod scenario;
mod vectors;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{rig::Rig, scenario::Scenario};

/// Why a file does not hold.
#[derive(Debug)]
pub enum Fault {
    /// The SDK has refused, which a step may expect.
    Client(client::Error),
    Mismatch(String),
}

impl From<client::Error> for Fault {
    fn from(error: client::Error) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Mismatch(error.to_string())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Mismatch(error.to_string())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(error) => write!(f, "{error:?}"),
            Self::Mismatch(reason) => f.write_str(reason),
        }
    }
}

pub fn mismatch<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Mismatch(reason.into()))
}

/// Names the files of a directory of the suite, in order.
fn files(suite: &Path, kind: &str) -> Result<Vec<PathBuf>, Fault> {
    let found: Result<Vec<_>, _> = fs::read_dir(suite.join(kind))?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut found = found?;
    found.sort();
    Ok(found)
}

async fn run(suite: &Path) -> Result<usize, Fault> {
    let rig = Rig::start(suite).await?;
    let only = env::var("CONFORMANCE_ONLY").ok();
    let mut failed = 0;
    for kind in ["vectors", "scenarios"] {
        for path in files(suite, kind)? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = if kind == "vectors" { format!("vectors/{stem}") } else { stem.clone() };
            if only.as_ref().is_some_and(|only| *only != name) {
                continue;
            }
            let data: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
            let outcome = match kind {
                "vectors" => vectors::run(&rig, &stem, &data).await,
                _ => Scenario::new(&rig).run(&data["steps"]).await,
            };
            match outcome {
                Ok(()) => println!("rust {name} pass"),
                Err(fault) => {
                    failed += 1;
                    println!("rust {name} fail {}", fault.to_string().replace('\n', " "));
                }
            }
        }
    }
    Ok(failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the binary: scripts/sdk_test.sh rust"]
async fn every_file_of_the_suite_holds() {
    // A line of its own for the first verdict, whatever the harness has printed before it.
    println!();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdks/conformance");
    let suite = env::var_os("CONFORMANCE_DIR").map_or(beside, PathBuf::from);
    let failed = run(&suite).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(failed, 0, "files that do not hold");
}
