//! The disk under a SQLite file fills up, and is enlarged: what was acknowledged is there, and the service goes on by itself.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use crate::rig::{Backend, Client, Receiver, Service, beside_others, callback_to, eventually, now, tolerated};

const SMALL: &str = "16m";
const LARGE: &str = "96m";
const PAYLOAD_BYTES: [usize; 3] = [200 * 1024, 10 * 1024, 1];
/// Many more than fit.
const CREATES_MAX: usize = 10_000;
const DUE: usize = 10;
const RESUME_WITHIN: Duration = Duration::from_secs(5);

/// A small disk of its own, which goes away with this.
struct Disk {
    at: PathBuf,
    _directory: tempfile::TempDir,
}

impl Disk {
    /// `None` where nothing can be mounted.
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = directory.path().join("disk");
        std::fs::create_dir(&at).expect("a directory");
        let options = format!("size={SMALL}");
        mount(&["-t", "tmpfs", "-o", &options, "timer-e2e"], &at).then(|| Self { at, _directory: directory })
    }

    fn enlarge(&self) {
        assert!(mount(&["-o", &format!("remount,size={LARGE}")], &self.at), "the disk cannot be enlarged");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: after a panic the service may still have its file open.
        drop(Command::new("umount").arg("--lazy").arg(&self.at).status());
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    Command::new("mount").args(arguments).arg(at).output().is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_the_service_goes_on_once_there_is_room() {
    let _machine = beside_others().await;
    let Some(disk) = Disk::mount() else {
        // Past the capture of the test program, which shows what is printed by tests that fail only.
        drop(writeln!(std::io::stderr(), "skipped a_full_disk_loses_nothing…: it needs the right to mount a tmpfs"));
        return;
    };
    let backend = Backend::sqlite_in(&disk.at);
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let mut due = Vec::new();
    for n in 0..DUE {
        // Due at any moment from before the disk is full to after.
        let delay = format!("{}ms", 400 * (n + 1));
        due.push(client.create(&json!({"delay": delay, "callback": callback_to(&receiver.url("/due"), &json!(n))})).await);
    }
    let last_due = now() + 400_000 * DUE as i64;
    let kept = fill(&client).await;
    assert!(kept.len() > 10, "{} creates before the disk was full", kept.len());

    let health = client.get("/healthz").await;
    assert_eq!(health.status, 500, "{}", health.text);
    assert_eq!(health.json()["data"]["status"], "degraded");
    assert_eq!(health.message(), "storage is not well");
    assert_eq!(health.json()["data"]["storage"], "cannot be written: the disk is full, or writing is not allowed");

    for path in ["/timers", "/timers?limit=200", "/ping"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    for id in kept.iter().map(|(id, _)| id).chain(&due) {
        client.timer(id).await;
    }
    assert!(service.is_running(), "the service lives");

    // Those that are due meanwhile are not lost, either.
    crate::rig::wait_for_wall(last_due + 500_000).await;
    let fired = receiver.count();
    disk.enlarge();
    let enlarged = now();
    // By itself: nothing was registered since.
    eventually("/healthz is 200 again", RESUME_WITHIN, async || (client.get("/healthz").await.status == 200).then_some(())).await;
    let created = eventually("a create is taken again", RESUME_WITHIN, async || {
        let timer = json!({"delay": "1ms", "callback": callback_to(&receiver.url("/new"), &json!(1))});
        client.try_create(&timer).await.ok().filter(|answer| answer.status == 201).map(|answer| answer.id())
    })
    .await;
    due.push(created);
    for id in &due {
        client.wait_for_status(id, "completed").await;
    }
    let resumed = (now() - enlarged) as f64 / 1e6;
    println!(
        "SQLite: the disk was full after {} creates; of {DUE} timers due around then {fired} were called before it was enlarged, \
         and {resumed:.2} s after it all were done",
        kept.len()
    );
    assert!(resumed < tolerated(RESUME_WITHIN).as_secs_f64(), "{resumed} s");
    assert_eq!(receiver.count(), due.len(), "each was called once");

    service.stop().await;
    service.start_again().await;
    let client = service.client();
    for (id, bytes) in &kept {
        let timer = client.timer(id).await;
        assert_eq!(timer["status"], "pending", "{id}");
        assert_eq!(timer["callback_config"]["payload"], padding(*bytes), "{id}");
    }
    service.stop().await;
}

fn padding(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

/// Registers timers, large ones first, until the service says that it has no room for the smallest; those that it took.
async fn fill(client: &Client) -> Vec<(String, usize)> {
    let mut kept = Vec::new();
    for bytes in PAYLOAD_BYTES {
        let timer = json!({"delay": "1d", "callback": callback_to("http://127.0.0.1:9/", &padding(bytes))});
        loop {
            let answer = client.try_create(&timer).await.expect("an answer");
            match answer.status {
                201 => kept.push((answer.id(), bytes)),
                503 => break,
                _ => panic!("{answer:?}"),
            }
            assert!(kept.len() < CREATES_MAX, "the disk is not full after {CREATES_MAX} creates");
        }
    }
    kept
}
