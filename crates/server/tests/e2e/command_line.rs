//! The other commands, and what `timer dev` shows.

use std::{
    fs::File,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::rig::{API_KEY, Backend, Client, Service, beside_others, eventually, for_each_store, timer};

for_each_store!(migrating_twice_is_as_good_as_once_and_serving_comes_after, a_healthcheck_tells_a_healthy_service_from_none,);

#[tokio::test]
async fn version_and_help_read_well() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let said = |arguments: &[&str]| {
        let output = timer(backend.home()).args(arguments).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(said(&["--version"]), format!("timer {}\n", env!("CARGO_PKG_VERSION")));
    let help = said(&["--help"]);
    let bench = cfg!(feature = "bench").then_some("bench");
    let of_service = ["serve", "dev", "migrate", "backup", "restore", "healthcheck", "status", "keys"];
    let of_timers = ["create", "get", "list", "attempts", "update", "cancel", "fire", "retry", "pause", "resume", "reschedule"];
    let more = ["watch", "listen", "next", "top", "export", "import", "sign", "verify", "profile", "completion", "man"];
    let pages = ["open", "login", "docs"];
    for command in of_service.into_iter().chain(of_timers).chain(more).chain(pages).chain(bench) {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
    let help = said(&["serve", "--help"]);
    for variable in [
        "API_KEY",
        "RATE_LIMIT",
        "RATE_LIMIT_BURST",
        "PORT",
        "BIND",
        "DATABASE_URL",
        "PG_HOST",
        "MIN_DELAY",
        "MAX_HORIZON",
        "RETENTION",
        "OVERDUE_WINDOW",
        "RETRY_INTERVAL_MIN",
        "TIMER_POLLING_INTERVAL",
        "TIMER_BATCH_SIZE",
        "EGRESS",
        "EGRESS_ALLOW",
        "SIGNING_SECRET",
        "ATTEMPTS",
        "NAMESPACES_FILE",
        "NATS_URL",
        "TIMER_BROKER",
        "RUST_LOG",
        "LOG_FORMAT",
    ] {
        assert!(help.contains(&format!(" {variable}")), "{variable} in\n{help}");
    }
}

#[tokio::test]
async fn help_never_shows_the_values_of_secrets() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let secrets = ["API_KEY", "DATABASE_URL", "PG_PASSWORD", "SIGNING_SECRET", "NATS_URL", "TIMER_BROKER_URL", "NATS_PASSWORD"]
        .map(|variable| (variable, "Tr0ub4dor"));
    for arguments in [["serve", "--help"].as_slice(), &["keys", "create", "--help"]] {
        let output = timer(backend.home()).args(arguments).envs(secrets).output().expect("the binary runs");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("Tr0ub4dor"), "{output:?}");
    }
}

async fn migrating_twice_is_as_good_as_once_and_serving_comes_after(backend: Backend) {
    let _machine = beside_others().await;
    for _ in 0..2 {
        let output = timer(backend.home()).arg("migrate").env("DATABASE_URL", backend.url()).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("is up to date"), "{said}");
    }
    let mut service = Service::start(&backend).await;
    assert_eq!(service.client().count("pending").await, 0);
    service.stop().await;
}

#[tokio::test]
async fn a_service_has_all_the_open_files_that_it_may_have() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let port = throwaway::free_port();
    let mut service = Command::new("sh")
        .args(["-c", "ulimit -S -n 256 && exec \"$0\" serve", env!("CARGO_BIN_EXE_timer")])
        .env_clear()
        .envs([("API_KEY", API_KEY), ("PORT", &port.to_string())])
        .current_dir(backend.home())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let client = Client::new(port);
    eventually("healthy", Duration::from_secs(45), async || client.try_send("GET", "/healthz", None).await.ok()).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.id())).expect("the limits of the service");
    service.kill().and_then(|()| service.wait()).expect("the service ends");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit for files");
    let [soft, hard] = files.split_whitespace().skip(3).take(2).collect::<Vec<_>>()[..] else { panic!("{files}") };
    assert_eq!(soft, hard);
    assert_ne!(soft, "256");
}

async fn a_healthcheck_tells_a_healthy_service_from_none(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let port = service.port().to_string();
    let check = || timer(backend.home()).arg("healthcheck").env("PORT", &port).output().expect("the binary runs");
    let healthy = check();
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    service.stop().await;
    let gone = check();
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert_eq!(String::from_utf8_lossy(&gone.stderr).lines().count(), 1, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_the_same_file_refuses_with_a_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let mut service = Service::start(&backend).await;
    let settings = [("API_KEY", API_KEY), ("BIND", "127.0.0.1"), ("PORT", "0"), ("DATABASE_URL", backend.url())];
    let second = timer(backend.home()).arg("serve").envs(settings).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("timers.db"), "the sentence names the file: {said}");
    // The first one has not noticed.
    assert_eq!(service.client().get("/healthz").await.status, 200);
    service.stop().await;
}

/// A `timer dev` that ends with the test.
struct Dev {
    child: Child,
    log: std::path::PathBuf,
}

impl Drop for Dev {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

impl Dev {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    async fn wait_for(&self, text: &str) -> String {
        eventually(&format!("{text:?} in the log"), Duration::from_secs(20), async || {
            Some(self.log()).filter(|log| log.contains(text))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_curl_line_that_timer_dev_prints_works_when_pasted() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let log = backend.home().join("log");
    let file = File::create(&log).expect("a log file");
    let mut command = timer(backend.home());
    command.args(["dev", "--port", "0"]).stdout(Stdio::null()).stderr(file);
    let dev = Dev { child: command.spawn().expect("the binary runs"), log };

    let said = dev.wait_for("Stop with ctrl-C").await;
    for line in ["API key    dev-", "Store      SQLite file timer.db", "http://127.0.0.1:"] {
        assert!(said.contains(line), "{line:?} in\n{said}");
    }
    let from = said.find("curl ").expect("a curl line");
    let to = said.find("Stop with ctrl-C").expect("the end of the message");
    let output =
        Command::new("bash").arg("-c").arg(format!("{} --silent --show-error", said[from..to].trim())).output().expect("bash");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains("timer created successfully"), "{answer}{output:?}");

    let said = dev.wait_for("the receiver got POST /hello").await;
    assert!(said.contains("the past"), "{said}");
    assert!(backend.home().join("timer.db").exists());
}

#[tokio::test]
async fn timer_dev_stays_on_this_machine() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let output = timer(backend.home()).args(["dev", "--port", "0", "--bind", "0.0.0.0"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("BIND") && said.lines().count() == 1, "{said}");
}
