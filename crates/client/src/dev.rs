//! For tests: a `timer dev` that ends with the test, its inbox, and its clock.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Client, Error, Instant, Query, Request,
    webhook::{self, Call, Doubt, Secret},
    wire,
};

const STARTED_WITHIN: Duration = Duration::from_secs(30);
const ADVANCED_WITHIN: Duration = Duration::from_secs(60);
/// How long calls are waited for, and how long one request does so.
const CALLS_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(1);
/// How many calls of an inbox are read.
const CALLS_MAX: usize = 1_000;
/// What of the environment reaches the program. No setting does.
const KEPT: [&str; 7] = ["PATH", "HOME", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "RUST_LOG", "RUST_BACKTRACE"];

/// A `timer dev` in a directory of its own, which is removed with it. Dropping it ends it.
///
/// ```no_run
/// # async fn example() -> Result<(), client::Error> {
/// use client::{
///     NewTimer,
///     dev::{Calls, TimerDev},
/// };
///
/// let dev = TimerDev::start().await?;
/// let timer = dev.client.timers().create(&NewTimer::http(dev.receiver("/reminder")).delay("30d")).await?;
/// dev.advance("30d").await?;
/// assert_eq!(dev.wait_for(&Calls::of(&timer.id), 1).await?[0].attempt, Some(1));
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Advanced {
    #[serde(with = "wire::instant")]
    pub now: Instant,
    pub fired: u64,
    pub completed: u64,
    pub failed: u64,
    pub pending: u64,
    /// When the next attempt is due.
    #[serde(default, with = "wire::some_instant")]
    pub next: Option<Instant>,
    pub complete: bool,
}

/// A call that the receiver got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Received {
    pub seq: u64,
    #[serde(with = "wire::instant")]
    pub at: Instant,
    pub lateness_ms: Option<i64>,
    pub timer_id: Option<String>,
    pub attempt: Option<u32>,
    pub method: String,
    pub path: String,
    pub headers: std::collections::BTreeMap<String, String>,
    pub body: String,
    pub signature_valid: Option<bool>,
    pub duplicate_of: Option<u64>,
}

/// Which calls of the inbox are meant; all of them unless something is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls {
    pub timer: Option<String>,
    pub path: Option<String>,
    /// Those after the call with this `seq`.
    pub after: u64,
}

impl Calls {
    /// Those for a timer.
    pub fn of(timer: impl Into<String>) -> Self {
        Self { timer: Some(timer.into()), ..Self::default() }
    }

    /// Those of a path.
    pub fn at(path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::default() }
    }
}

/// What the receiver answers: to one path or to all, the next `times` calls or every one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// 200 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub headers: std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// How long the answer takes, in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// It never answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<bool>,
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
        command.env_clear().envs(KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
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
        started.client = Client::builder(&started.ready.url, &started.ready.api_key).timeout(ADVANCED_WITHIN).build()?;
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

    /// Moves the clock to this time.
    pub async fn advance_to(&self, at: Instant) -> Result<Advanced, Error> {
        self.move_clock(json!({"to": wire::text(at)})).await
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

    /// The calls so far, the oldest first.
    pub async fn calls(&self, which: &Calls) -> Result<Vec<Received>, Error> {
        self.look(which, None).await
    }

    /// Waits up to ten seconds until there are at least `count` calls, and returns all of them.
    pub async fn wait_for(&self, which: &Calls, count: usize) -> Result<Vec<Received>, Error> {
        let until = tokio::time::Instant::now() + CALLS_WITHIN;
        let mut which = which.clone();
        let mut calls = Vec::new();
        while calls.len() < count {
            if tokio::time::Instant::now() > until {
                return Err(Error::Usage(format!("{} of {count} calls within {} s", calls.len(), CALLS_WITHIN.as_secs())));
            }
            calls.extend(self.look(&which, Some(LOOK)).await?);
            which.after = calls.last().map_or(which.after, |call| call.seq);
        }
        Ok(calls)
    }

    async fn look(&self, which: &Calls, wait: Option<Duration>) -> Result<Vec<Received>, Error> {
        #[derive(Deserialize)]
        struct Inbox {
            calls: Vec<Received>,
        }
        let Calls { timer, path, after } = which;
        let query =
            Query::new().with_some("timer", timer.clone()).with_some("path", path.clone()).with("after", after.to_string());
        let query = query.with("limit", CALLS_MAX.to_string()).with_some("wait", wait.map(crate::duration));
        Ok(self.client.read(&query.on("/dev/inbox")).await?.parse::<Inbox>()?.calls)
    }

    /// Replaces what the receiver answers; without any, every call is answered with 200.
    pub async fn answer(&self, answers: &[InboxAnswer]) -> Result<(), Error> {
        let body = json!({"answers": answers});
        self.client.call(&Request::new(Method::PUT, "/dev/inbox/answers").json(body.to_string())).await.map(drop)
    }

    /// Empties the inbox.
    pub async fn clear(&self) -> Result<(), Error> {
        self.client.call(&Request::new(Method::DELETE, "/dev/inbox")).await.map(drop)
    }

    /// The call as a receiver would take it, verified at the time at which it was sent.
    pub fn verify(&self, call: &Received) -> Result<Call, Doubt> {
        let headers: HeaderMap = (call.headers.iter())
            .filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?)))
            .collect();
        let sent = headers.get("webhook-timestamp").and_then(|value| value.to_str().ok()?.parse().ok());
        let now = sent.and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0)).ok_or(Doubt::Timestamp)?;
        let secrets = [Secret::parse(self.signing_secret())?];
        webhook::verify(&headers, call.body.as_bytes(), &secrets, webhook::TOLERANCE, now)
    }
}

impl Drop for TimerDev {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.home));
    }
}
