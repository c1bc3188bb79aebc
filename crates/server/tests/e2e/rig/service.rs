use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    time::Duration,
};

use super::{Backend, Client, DATABASE_PASSWORD, FakeTime, eventually, tolerated};

pub const API_KEY: &str = "e2e-0123456789abcdef0123456789abcdef";

/// How long a service may take to be healthy, or to end, on a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(45);
const PERMITS_FREE_WITHIN: Duration = Duration::from_secs(5);
const TAIL_LINES: usize = 60;

/// The real binary with nothing in its environment but what the test puts there.
pub fn timer(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_timer"));
    command.env_clear().current_dir(home).stdin(Stdio::null());
    command
}

/// One `timer serve`, from its start to its end. Dropping it kills it, and shows its log when the test has failed.
pub struct Service {
    child: Child,
    port: u16,
    environment: Vec<(String, String)>,
    home: PathBuf,
    log: PathBuf,
}

impl Service {
    /// A service for quick timers, healthy.
    pub async fn start(backend: &Backend) -> Self {
        Self::start_with(backend, &[("MIN_DELAY", "0s")]).await
    }

    /// A service whose wall clock the test can set, healthy.
    pub async fn start_at(backend: &Backend, time: &FakeTime, settings: &[(&str, &str)]) -> Self {
        let mut service = Self::begin_at(backend, time, settings);
        service.wait_until_healthy().await;
        service
    }

    pub async fn start_with(backend: &Backend, settings: &[(&str, &str)]) -> Self {
        Self::start_in(backend, environment(backend, settings)).await
    }

    /// A service for quick timers with callbacks over NATS, connected.
    pub async fn start_with_nats(backend: &Backend, url: &str) -> Self {
        let service = Self::start_with(backend, &[("MIN_DELAY", "0s"), ("NATS_URL", url)]).await;
        service.client().wait_for_health("nats", "connected").await;
        service
    }

    /// A service for quick timers that takes commands from the broker, connected.
    pub async fn start_with_commands(backend: &Backend, url: &str) -> Self {
        let service = Self::start_with(backend, &with_commands(url)).await;
        service.client().wait_for_health("broker", "connected").await;
        service
    }

    async fn start_in(backend: &Backend, environment: Vec<(String, String)>) -> Self {
        let mut service = Self::spawn(backend, environment);
        service.wait_until_healthy().await;
        service
    }

    /// Not yet waited for.
    pub fn begin(backend: &Backend, settings: &[(&str, &str)]) -> Self {
        Self::spawn(backend, environment(backend, settings))
    }

    /// Not yet waited for, and with a wall clock of its own.
    pub fn begin_at(backend: &Backend, time: &FakeTime, settings: &[(&str, &str)]) -> Self {
        let mut environment = environment(backend, settings);
        environment.extend(time.environment());
        Self::spawn(backend, environment)
    }

    fn spawn(backend: &Backend, environment: Vec<(String, String)>) -> Self {
        let port = throwaway::free_port();
        let home = backend.home().to_path_buf();
        let log = home.join(format!("log-{port}"));
        let child = launch(&home, log_file(&log), port, &environment);
        Self { child, port, environment, home, log }
    }

    /// A service for quick timers, healthy, whose log the test reads from a pipe.
    pub async fn start_with_piped_log(backend: &Backend, settings: &[(&str, &str)]) -> (Self, ChildStderr) {
        let (home, port, environment) = (backend.home().to_path_buf(), throwaway::free_port(), environment(backend, settings));
        let mut child = launch(&home, Stdio::piped(), port, &environment);
        let reader = child.stderr.take().expect("the read end of a pipe");
        let log = home.join(format!("log-{port}"));
        let mut service = Self { child, port, environment, home, log };
        service.wait_until_healthy().await;
        (service, reader)
    }

    /// A service for quick timers that may have only so many open files, healthy.
    pub async fn start_with_open_files(backend: &Backend, open_files_max: u64, settings: &[(&str, &str)]) -> Self {
        let (home, port, environment) = (backend.home().to_path_buf(), throwaway::free_port(), environment(backend, settings));
        let log = home.join(format!("log-{port}"));
        let mut limited = Command::new("sh");
        limited.env_clear().current_dir(&home).stdin(Stdio::null());
        limited.args(["-c", &format!("ulimit -n {open_files_max} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_timer")]);
        let child = serve(limited, log_file(&log), port, &environment);
        let mut service = Self { child, port, environment, home, log };
        service.wait_until_healthy().await;
        service
    }

    /// From now on it may open so many files beyond those it has open; without a number, as many as ever.
    pub fn allow_open_files(&self, more: Option<usize>) {
        let process = self.child.id();
        let open = fs::read_dir(format!("/proc/{process}/fd")).expect("the service runs").count();
        // The soft limit only: the hard one cannot be raised again.
        let soft = more.map_or("1024".to_owned(), |more| (open + more).to_string());
        let limited = Command::new("prlimit").args([&format!("--pid={process}"), &format!("--nofile={soft}:")]).status();
        assert!(limited.expect("the program `prlimit`").success(), "the limit could not be set");
    }

    /// The same again, on the same port, after it has ended.
    pub async fn start_again(&mut self) {
        assert!(self.child.try_wait().expect("the state of the service").is_some(), "the service still runs");
        self.child = launch(&self.home, log_file(&self.log), self.port, &self.environment);
        self.wait_until_healthy().await;
    }

    pub async fn wait_until_healthy(&mut self) {
        let client = self.client();
        let (child, log) = (&mut self.child, &self.log);
        let deadline = tokio::time::Instant::now() + tolerated(TIMEOUT);
        loop {
            if let Some(status) = child.try_wait().expect("the state of the service") {
                panic!("the service ended while starting: {status}\n{}", tail(log));
            }
            if client.try_send("GET", "/healthz", None).await.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "not healthy in time\n{}", tail(log));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn client(&self) -> Client {
        Client::new(self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the state of the service").is_none()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("the service can be killed");
        self.child.wait().expect("the service ends");
    }

    /// SIGTERM.
    pub fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Sends a signal by its name without `SIG`.
    pub fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &process]).status().expect("the program `kill`");
        assert!(sent.success(), "SIG{name} could not be sent");
    }

    pub async fn wait_for_end(&mut self) -> ExitStatus {
        let log = self.log.clone();
        let child = &mut self.child;
        let deadline = tokio::time::Instant::now() + tolerated(TIMEOUT);
        loop {
            if let Some(status) = child.try_wait().expect("the state of the service") {
                return status;
            }
            assert!(tokio::time::Instant::now() < deadline, "the service did not end in time\n{}", tail(&log));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops it as an operator would, after the calls under way are done and every permit for calls is free again: a permit that is
    /// never given back would in time keep a receiver from being called at all.
    pub async fn stop(&mut self) {
        let client = self.client();
        eventually("timer_in_flight is 0 again", PERMITS_FREE_WITHIN, async || {
            client.metric("timer_in_flight").await.is_none_or(|in_flight| in_flight == 0.0).then_some(())
        })
        .await;
        self.stop_with_calls_under_way().await;
    }

    /// Stops it as an operator would, whatever it is doing.
    pub async fn stop_with_calls_under_way(&mut self) {
        self.ask_to_stop();
        let status = self.wait_for_end().await;
        assert_eq!(status.code(), Some(0), "{}", tail(&self.log));
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub async fn wait_for_log(&self, text: &str) {
        eventually(&format!("{text:?} in the log"), Duration::from_secs(20), async || self.log().contains(text).then_some(()))
            .await;
    }

    /// Memory in use, in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.memory("VmRSS:")
    }

    /// The most memory that was in use at once, in MiB.
    pub fn peak_mib(&self) -> f64 {
        self.memory("VmHWM:")
    }

    /// The processor time that it has used, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        /// The unit in which Linux tells it, on every architecture.
        const TICKS_PER_SECOND: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the service runs");
        // The name of the program comes first, in brackets; of what follows it, the 12th and 13th are user and system time.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
        fields.map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / TICKS_PER_SECOND
    }

    fn memory(&self, line: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the service runs");
        let kib = status.lines().find_map(|text| text.strip_prefix(line)).and_then(|rest| rest.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<f64>().ok()).expect("a number of KiB") / 1024.0
    }
}

/// The settings of a service for quick timers that takes commands from the broker.
pub fn with_commands(url: &str) -> [(&str, &str); 3] {
    [("MIN_DELAY", "0s"), ("NATS_URL", url), ("TIMER_BROKER", "nats")]
}

fn environment(backend: &Backend, settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let usual = [
        ("API_KEY", API_KEY),
        ("BIND", "127.0.0.1"),
        // All clients of a test have one address.
        ("CONNECTIONS_PER_ADDRESS_MAX", "1024"),
        ("DATABASE_URL", backend.url()),
        ("RUST_LOG", "info"),
        // Retries of a test come as soon as their policy says.
        ("RETRY_INTERVAL_MIN", "0s"),
    ];
    usual.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn log_file(path: &Path) -> Stdio {
    File::options().create(true).append(true).open(path).expect("a log file").into()
}

fn launch(home: &Path, log: Stdio, port: u16, environment: &[(String, String)]) -> Child {
    serve(timer(home), log, port, environment)
}

fn serve(mut command: Command, log: Stdio, port: u16, environment: &[(String, String)]) -> Child {
    command.arg("serve").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(log);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.spawn().expect("the binary can be started")
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    format!("the end of its log:\n{}", lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("{}", tail(&self.log));
            return;
        }
        let log = self.log();
        assert!(!log.contains("panicked"), "something panicked in the service\n{log}");
        for secret in [API_KEY, DATABASE_PASSWORD] {
            assert!(!log.contains(secret), "a secret stands in the log\n{log}");
        }
    }
}
