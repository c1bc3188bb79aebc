//! A service started by the benchmark: a child process with a port and an API key of its own, stopped when this is dropped.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{client::Connection, error::Failed, plan::Plan, requests::Requests, target::Target};

/// How long a service may take until it owns every shard, migrations of a large database included.
const START_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How often a graceful shutdown is polled for.
const STOP_LOOKS_MAX: u32 = 200;
/// How many ports are tried. Each is free when it is chosen; another process may open it before the service does.
const PORTS_TRIED_MAX: usize = 5;

/// How the service is started.
#[derive(Debug)]
pub struct Wanted {
    pub program: PathBuf,
    /// The parent of the directory that the service gets for its files.
    pub directory: PathBuf,
    /// Without a URL, the service uses a temporary SQLite file.
    pub database_url: Option<String>,
    pub api_key: String,
    /// Further settings of the service.
    pub settings: BTreeMap<String, String>,
    /// A command for the shell that is run before the service starts: it empties the database.
    pub before: Option<String>,
}

#[derive(Debug)]
pub struct Embedded {
    child: Child,
    home: TempDir,
    target: Target,
}

impl Embedded {
    /// Starts the service and waits until it fires timers.
    pub async fn start(wanted: &Wanted) -> Result<Self, Failed> {
        if let Some(command) = &wanted.before {
            prepare(command)?;
        }
        let mut tried = 1;
        loop {
            match Self::start_on(free_port().map_err(cannot)?, wanted).await {
                Err(Failed::Run(why)) if tried < PORTS_TRIED_MAX && is_port_taken(&why) => tried += 1,
                started => return started,
            }
        }
    }

    async fn start_on(port: u16, wanted: &Wanted) -> Result<Self, Failed> {
        // The service runs in a directory of its own, so this path must be absolute.
        let directory = wanted.directory.canonicalize().map_err(cannot)?;
        let home = tempfile::Builder::new().prefix("timer-bench-").tempdir_in(directory).map_err(cannot)?;
        let log = File::create(log_file(home.path())).map_err(cannot)?;
        let database_url = wanted.database_url.clone();
        let database_url = database_url.unwrap_or_else(|| format!("sqlite://{}", home.path().join("timer.db").display()));
        let mut command = Command::new(&wanted.program);
        // No variable is inherited that could make it another service than the one that the report describes.
        command.arg("serve").env_clear().envs(&wanted.settings).current_dir(home.path());
        command.env("API_KEY", &wanted.api_key).env("DATABASE_URL", database_url);
        command.env("BIND", "127.0.0.1").env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(cannot)?).stderr(log);
        let child = command.spawn().map_err(cannot)?;
        let target = Target::parse(&format!("http://127.0.0.1:{port}"), &wanted.api_key)?;
        let mut embedded = Self { child, home, target };
        embedded.wait_until_ready().await?;
        Ok(embedded)
    }

    pub const fn target(&self) -> &Target {
        &self.target
    }

    async fn wait_until_ready(&mut self) -> Result<(), Failed> {
        let ready = async {
            loop {
                if let Ok(Some(_)) = self.child.try_wait() {
                    let log = fs::read_to_string(log_file(self.home.path())).unwrap_or_default();
                    return Err(Failed::Run(format!("the service ended while it started: {}", last_line(&log))));
                }
                if holds_every_shard(&self.target).await == Some(true) {
                    return Ok(());
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        };
        let too_long = |_| Failed::Run(format!("the service was not ready within {} s.", START_TIME_MAX.as_secs()));
        tokio::time::timeout(START_TIME_MAX, ready).await.map_err(too_long)?
    }
}

impl Drop for Embedded {
    /// Stops the service gracefully, so that another process on the same database takes over its timers at once; kills it if
    /// that fails.
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if asked.is_ok_and(|status| status.success()) {
            for _ in 0..STOP_LOOKS_MAX {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn cannot(error: std::io::Error) -> Failed {
    Failed::Run(format!("no service can be started for this: {error}."))
}

fn prepare(command: &str) -> Result<(), Failed> {
    let failed = |why: String| Failed::Run(format!("the command before each run failed: {why}"));
    let output = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("{error}.")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(last_line(&String::from_utf8_lossy(&output.stderr))))
}

/// `None` while the service does not answer.
async fn holds_every_shard(target: &Target) -> Option<bool> {
    let mut request = Vec::new();
    Requests::new(&target.host, &target.api_key, &[], 0, Plan::Every { first: 0, gap: 0 }).get("/cluster", &mut request);
    let mut connection = Connection::open(target.address).await.ok()?;
    let answer = connection.exchange(&request).await.ok()?;
    Some(every_shard_is_owned(&serde_json::from_slice(answer.body).ok()?))
}

fn every_shard_is_owned(cluster: &Value) -> bool {
    let shards = cluster["data"]["shards"].as_array().map(Vec::as_slice).unwrap_or_default();
    !shards.is_empty() && shards.iter().all(|shard| shard["owner"].is_string())
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether a service ended because another process has its port.
fn is_port_taken(why: &str) -> bool {
    why.contains("cannot be opened: Address already in use")
}

fn log_file(home: &Path) -> PathBuf {
    home.join("log")
}

fn last_line(log: &str) -> String {
    log.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing.").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_is_ready_once_it_holds_every_shard() {
        let cluster = |owners: Value| {
            let shards: Vec<_> = owners.as_array().unwrap().iter().map(|owner| json!({"owner": owner})).collect();
            json!({"data": {"shards": shards}})
        };
        for (owners, ready) in [(json!(["a", "a"]), true), (json!(["a", null]), false), (json!([]), false)] {
            assert_eq!(every_shard_is_owned(&cluster(owners.clone())), ready, "{owners}");
        }
        assert!(!every_shard_is_owned(&json!({"code": 4})));
    }

    #[test]
    fn the_command_before_a_run_fails_with_its_last_line() {
        prepare("true").unwrap();
        let failure = prepare("echo one >&2; echo two >&2; exit 3").unwrap_err().to_string();
        assert_eq!(failure, "the command before each run failed: two");
    }

    #[tokio::test]
    async fn a_service_whose_port_is_taken_is_started_on_another() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("timer");
        let script = format!(
            "#!/bin/sh\necho \"$PORT\" >> {}\necho \"PORT 127.0.0.1:$PORT cannot be opened: Address already in use (os error 98).\"",
            home.path().join("ports").display()
        );
        let text = home.path().join("script");
        fs::write(&text, script).unwrap();
        // By another process: one that a test beside this starts could keep a file open that this one writes, which then cannot run.
        let installed = Command::new("install").arg("-m700").args([&text, &program]).status().unwrap();
        assert!(installed.success());
        let wanted = Wanted {
            program,
            directory: home.path().to_owned(),
            database_url: None,
            api_key: "key".to_owned(),
            settings: BTreeMap::new(),
            before: None,
        };
        let failure = Embedded::start(&wanted).await.unwrap_err().to_string();
        assert!(failure.contains("Address already in use"), "{failure}");
        let ports = fs::read_to_string(home.path().join("ports")).unwrap();
        assert_eq!(ports.lines().count(), PORTS_TRIED_MAX);
    }
}
