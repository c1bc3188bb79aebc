//! A backup that is taken while clients create timers and timers fire, and what a service that is restored from it still knows.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{Backend, Call, Client, Receiver, Reply, Service, blocking, callback_to, eventually, for_each_store, heavy};

const CLIENTS: usize = 8;
/// How many timers are acknowledged before the backup begins, and how many more once it is done.
const BEFORE: usize = 400;
const AFTER: usize = 200;
const SOON: Duration = Duration::from_secs(30);

for_each_store!(mariadb too: nothing_that_was_acknowledged_before_a_backup_is_lost);

/// Timers that the service has acknowledged, in that order, each with whether it fires within the test.
#[derive(Default)]
struct Acknowledged(Mutex<Vec<(String, bool)>>);

impl Acknowledged {
    fn push(&self, id: String, is_soon: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((id, is_soon));
    }

    fn so_far(&self) -> Vec<(String, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn reach(&self, count: usize) {
        eventually(&format!("{count} timers"), SOON, async || (self.so_far().len() >= count).then_some(())).await;
    }
}

/// Creates timers one after another: every other one is due while the test runs, the rest far in the future.
async fn create_until(stop: Arc<AtomicBool>, client: Client, url: String, acknowledged: Arc<Acknowledged>) {
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let is_soon = n % 2 == 0;
        let delay = if is_soon { format!("{}ms", 20 * (n % 40)) } else { "1d".to_owned() };
        let id = client.create(&json!({"delay": delay, "callback": callback_to(&url, &json!(n))})).await;
        acknowledged.push(id, is_soon);
    }
}

/// A timer that completes after the backup and not before: its receiver refuses every call until then.
struct CompletedSince {
    receiver: Receiver,
    is_accepted: Arc<AtomicBool>,
    id: String,
}

impl CompletedSince {
    async fn create(client: &Client) -> Self {
        let is_accepted = Arc::new(AtomicBool::new(false));
        let accepts = Arc::clone(&is_accepted);
        let receiver = Receiver::replying(move |_| Reply::Status(if accepts.load(Ordering::Relaxed) { 200 } else { 503 }));
        let retry_policy = json!({"max_retries": 1000, "initial_interval": "100ms", "backoff_multiplier": 1});
        let callback = callback_to(&receiver.url("/"), &json!("completed since"));
        let id = client.create(&json!({"delay": "0s", "callback": callback, "retry_policy": retry_policy})).await;
        receiver.wait_for(1, SOON).await;
        Self { receiver, is_accepted, id }
    }

    async fn complete(&self, client: &Client) {
        self.is_accepted.store(true, Ordering::Relaxed);
        client.wait_for_status(&self.id, "completed").await;
    }

    /// How many calls there have been since the first `count`. The receiver can tell by their id that they repeat an earlier one.
    fn repetitions_after(&self, count: usize) -> usize {
        let calls = self.receiver.calls();
        let webhook_id = calls[0].header("webhook-id");
        assert!(calls.iter().all(|call| call.header("webhook-id") == webhook_id), "{calls:?}");
        calls.len() - count
    }
}

async fn nothing_that_was_acknowledged_before_a_backup_is_lost(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Acknowledged::default()));
    let file = backend.home().join("backup");

    // Tasks of their own: they go on while the backup is taken.
    let creating = || create_until(Arc::clone(&stop), client.clone(), receiver.url("/"), Arc::clone(&acknowledged));
    let load: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(creating())).collect();
    let completed_since = CompletedSince::create(&client).await;
    acknowledged.reach(BEFORE).await;
    let completed = completed(&client, &acknowledged.so_far()).await;
    let before = acknowledged.so_far();
    blocking(|| backend.back_up(&file));
    acknowledged.reach(acknowledged.so_far().len() + AFTER).await;
    stop.store(true, Ordering::Relaxed);
    assert!(join_all(load).await.iter().all(Result::is_ok), "a client was refused");
    // More fires after the backup than is known to it, and then the machine is lost.
    receiver.wait_for(before.len() / 2, SOON).await;
    completed_since.complete(&client).await;
    service.kill();
    let (calls_before, known_calls) = (receiver.calls(), completed_since.receiver.count());

    let backend = blocking(|| backend.restored(&file));
    let mut service = Service::start(&backend).await;
    let client = service.client();
    for (id, is_soon) in &before {
        let timer = client.timer(id).await;
        let expected: &[&str] = if *is_soon { &["pending", "executing", "completed"] } else { &["pending"] };
        assert!(expected.contains(&timer["status"].as_str().unwrap_or_default()), "{timer}");
    }
    for (id, _) in before.iter().filter(|(_, is_soon)| *is_soon) {
        client.wait_for_status(id, "completed").await;
    }
    completed_since.complete(&client).await;
    assert!(completed_since.repetitions_after(known_calls) > 0, "it completed after the backup, and was not called again");
    check_calls(&before, &completed, &calls_before, &receiver.calls());
    service.stop().await;
}

/// Which of the timers have completed, as clients can see it.
async fn completed(client: &Client, acknowledged: &[(String, bool)]) -> HashSet<String> {
    let soon = acknowledged.iter().filter(|(_, is_soon)| *is_soon).take(50);
    let looks = join_all(soon.map(async |(id, _)| (id.clone(), client.timer(id).await["status"] == "completed"))).await;
    looks.into_iter().filter(|(_, is_completed)| *is_completed).map(|(id, _)| id).collect()
}

fn check_calls(before: &[(String, bool)], completed: &HashSet<String>, first_life: &[Call], both_lives: &[Call]) {
    let mut of: HashMap<&str, Vec<&str>> = HashMap::new();
    for call in both_lives {
        of.entry(call.timer_id()).or_default().push(call.header("webhook-id"));
    }
    for (id, is_soon) in before {
        let calls = of.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        assert_eq!(*is_soon, !calls.is_empty(), "{id} was called {} times", calls.len());
        // A timer that fired after the backup fires again. The receiver can tell by the id of the call.
        assert!(calls.len() <= 2 && calls.iter().all(|webhook_id| *webhook_id == calls[0]), "{id}: {calls:?}");
    }
    assert!(!completed.is_empty(), "the load is too small: nothing had completed before the backup");
    for id in completed {
        assert_eq!(of[id.as_str()].len(), 1, "{id} had completed before the backup and was called again");
    }
    let repeated = of.values().filter(|calls| calls.len() > 1).count();
    println!(
        "{} timers acknowledged before the backup, {} calls before the loss and {} after it, {repeated} of them repetitions",
        before.len(),
        first_life.len(),
        both_lives.len() - first_life.len()
    );
}
