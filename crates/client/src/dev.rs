//! For tests: a `timer dev` that ends with the test, its inbox, and its clock.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Client, Error, Instant, Query, Request, timer::instant};

const STARTED_WITHIN: Duration = Duration::from_secs(30);
const ADVANCED_WITHIN: Duration = Duration::from_secs(60);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A `timer dev` in a directory of its own, which is removed with it. Dropping it ends it.
///
/// ```no_run
/// # async fn example() -> Result<(), client::Error> {
/// use client::{NewTimer, dev::TimerDev};
///
/// let dev = TimerDev::start().await?;
/// let timer = dev.client.timers().create(&NewTimer::http(dev.receiver("/reminder")).delay("30d")).await?;
/// dev.advance("30d").await?;
/// assert_eq!(dev.inbox(&timer.id).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct TimerDev {
    pub client: Client,
    ready: Ready,
    home: PathBuf,
    child: Child,
}

#[derive(Debug, Default, Deserialize)]
struct Ready {
    url: String,
    api_key: String,
    receiver: String,
    signing_secret: String,
}

/// What happened while the clock was moved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Advanced {
    #[serde(deserialize_with = "instant")]
    pub now: Instant,
    pub fired: u64,
    pub completed: u64,
    pub failed: u64,
    pub pending: u64,
    pub complete: bool,
}

/// A call that the receiver got.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Received {
    pub seq: u64,
    #[serde(deserialize_with = "instant")]
    pub at: Instant,
    pub timer_id: Option<String>,
    pub attempt: Option<u32>,
    pub path: String,
    pub headers: std::collections::BTreeMap<String, String>,
    pub body: String,
    pub signature_valid: Option<bool>,
    pub duplicate_of: Option<u64>,
}

impl TimerDev {
    /// Starts the program that `TIMER_BIN` names, or `timer` of the path.
    pub async fn start() -> Result<Self, Error> {
        Self::start_program(std::env::var_os("TIMER_BIN").unwrap_or_else(|| "timer".into())).await
    }

    /// Starts this program.
    pub async fn start_program(program: impl Into<OsString>) -> Result<Self, Error> {
        let program = program.into();
        let home = std::env::temp_dir().join(format!("timer-dev-{}", uuid::Uuid::now_v7()));
        let failed = |what: &str, error: std::io::Error| Error::Usage(format!("timer dev cannot be started: {what}: {error}"));
        std::fs::create_dir(&home).map_err(|error| failed("its directory", error))?;
        let mut command = Command::new(&program);
        command.args(["dev", "--ready-json", "--port", "0"]).current_dir(&home);
        for setting in ["API_KEY", "DATABASE_URL", "TIMER_DB_PATH", "BASE_PATH", "BIND"] {
            command.env_remove(setting);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(&program.to_string_lossy(), error))?;
        let output = child.stdout.take();
        let mut started = Self { client: Client::new("http://127.0.0.1", "")?, ready: Ready::default(), home, child };
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            // What cannot be read is no line of JSON.
            output.map(|output| BufReader::new(output).read_line(&mut line));
            line
        });
        let line = tokio::time::timeout(STARTED_WITHIN, reading).await.ok().and_then(Result::ok).unwrap_or_default();
        started.ready = serde_json::from_str(&line)
            .map_err(|_| Error::Usage(format!("timer dev cannot be started: it said {:?}", line.trim_end())))?;
        started.client = Client::new(&started.ready.url, &started.ready.api_key)?;
        Ok(started)
    }

    /// A URL of its receiver.
    pub fn receiver(&self, path: &str) -> String {
        format!("{}{path}", self.ready.receiver)
    }

    pub fn url(&self) -> &str {
        &self.ready.url
    }

    pub fn api_key(&self) -> &str {
        &self.ready.api_key
    }

    pub fn signing_secret(&self) -> &str {
        &self.ready.signing_secret
    }

    /// Moves the clock by `30d`, say; everything that becomes due on the way fires, in order.
    pub async fn advance(&self, by: &str) -> Result<Advanced, Error> {
        self.move_clock(json!({"by": by})).await
    }

    /// Moves the clock to when the next attempt is due.
    pub async fn advance_to_next(&self) -> Result<Advanced, Error> {
        self.move_clock(json!({"until": "next"})).await
    }

    /// Moves the clock until nothing is pending.
    pub async fn advance_until_idle(&self) -> Result<Advanced, Error> {
        self.move_clock(json!({"until": "idle"})).await
    }

    async fn move_clock(&self, by: Value) -> Result<Advanced, Error> {
        let request = Request::post("/dev/clock/advance").json(by.to_string()).timeout(ADVANCED_WITHIN);
        self.client.call(&request).await?.data.parse()
    }

    /// The calls for a timer so far.
    pub async fn inbox(&self, timer: &str) -> Result<Vec<Received>, Error> {
        self.received(&Query::new().with("timer", timer)).await
    }

    /// The calls of a path, once there is one; none if there is none in time.
    pub async fn wait_for(&self, path: &str, wait: Duration) -> Result<Vec<Received>, Error> {
        let wait = wait.min(WAIT_MAX);
        self.received(&Query::new().with("path", path).with("wait", format!("{}ms", wait.as_millis()))).await
    }

    /// The calls that match: `timer`, `path`, `after`, `limit`, `wait`.
    pub async fn received(&self, query: &Query) -> Result<Vec<Received>, Error> {
        #[derive(Deserialize)]
        struct Calls {
            calls: Vec<Received>,
        }
        let request = Request::get(query.on("/dev/inbox")).timeout(WAIT_MAX + Duration::from_secs(10));
        Ok(self.client.call(&request).await?.data.parse::<Calls>()?.calls)
    }

    /// What the receiver answers from now on: a list of `{"path", "status", "headers", "body", "delay", "times", "hang"}`.
    pub async fn answer(&self, answers: &Value) -> Result<(), Error> {
        let body = json!({"answers": answers});
        self.client.call(&Request::new(Method::PUT, "/dev/inbox/answers").json(body.to_string())).await.map(drop)
    }
}

impl Drop for TimerDev {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.home));
    }
}
