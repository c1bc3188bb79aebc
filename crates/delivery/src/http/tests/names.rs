//! A host whose name is slow holds up its own calls only.

use std::{collections::BTreeMap, sync::Mutex};

use tokio::task::JoinSet;

use super::*;
use crate::{Attempted, Shortage};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const SLOW_HOSTS: usize = 8;

/// Never answers for `slow-…`, and counts how often it was asked.
#[derive(Clone, Default)]
struct Stuck(Arc<Mutex<BTreeMap<String, usize>>>);

impl Names for Stuck {
    fn lookup(&self, host: String) -> Lookup {
        *self.0.lock().unwrap().entry(host.clone()).or_default() += 1;
        if host.starts_with("slow-") {
            return Box::pin(std::future::pending());
        }
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[tokio::test]
async fn calls_to_slow_names_do_not_delay_a_call_to_another() {
    let receiver = Receiver::answering(OK).await;
    let port = receiver.addr.port();
    let names = Stuck::default();
    let deliverer = Arc::new(guarded(Egress::default(), names.clone()));
    let mut slow = JoinSet::new();
    for number in 0..50 {
        let deliverer = Arc::clone(&deliverer);
        let host = format!("slow-{}.example", number % SLOW_HOSTS);
        slow.spawn(async move {
            let timer = timers::http(&format!("http://{host}:{port}/"), r#","timeout":"2s""#);
            deliverer.attempt(&timer, 1, Prepared::default()).await.outcome
        });
    }
    // Until every slow name is being looked up.
    while names.0.lock().unwrap().len() < SLOW_HOSTS {
        tokio::task::yield_now().await;
    }
    for host in ["good.example", "localhost", "127.0.0.1"] {
        let timer = timers::http(&format!("http://{host}:{port}/"), r#","timeout":"1s""#);
        assert_eq!(deliverer.attempt(&timer, 1, Prepared::default()).await.outcome, Outcome::Delivered, "{host}");
    }
    assert!(slow.try_join_next().is_none(), "the slow ones were still waiting");
    while let Some(outcome) = slow.join_next().await {
        assert_eq!(failure(outcome.unwrap()).kind, FailureKind::Timeout);
    }
    let mut asked = std::mem::take(&mut *names.0.lock().unwrap());
    assert_eq!((asked.remove("good.example"), asked.remove("localhost")), (Some(1), Some(1)));
    assert_eq!(asked.into_values().collect::<Vec<_>>(), [1; SLOW_HOSTS]);
}

#[test]
fn a_lookup_needs_none_of_the_threads_for_blocking_work() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let blocked = tokio::task::spawn_blocking(move || released.recv());
        let receiver = Receiver::answering(OK).await;
        let timer = timers::http(&format!("http://localhost:{}/", receiver.addr.port()), r#","timeout":"4s""#);
        let outcome = deliverer().attempt(&timer, 1, Prepared::default()).await.outcome;
        drop(release);
        assert_eq!(outcome, Outcome::Delivered);
        blocked.await.unwrap().unwrap_err();
    });
}

#[tokio::test]
async fn an_answer_that_was_kept_is_guarded_again() {
    let mut receiver = Receiver::answering(OK).await;
    let names = Stuck::default();
    let port = receiver.addr.port();
    let deliverer = guarded(Egress::parse("public", &format!("good.example:{port}")).unwrap(), names.clone());
    let at = |port: u16| timers::http(&format!("http://good.example:{port}/"), "");
    assert_eq!(deliverer.attempt(&at(port), 1, Prepared::default()).await.outcome, Outcome::Delivered);
    assert_eq!(failure(deliverer.attempt(&at(port ^ 1), 1, Prepared::default()).await.outcome).kind, FailureKind::Egress);
    assert_eq!(names.0.lock().unwrap()["good.example"], 1);
    assert_eq!(receiver.connections().await, 1);
}

#[tokio::test]
async fn a_lookup_that_this_machine_cannot_make_is_no_attempt() {
    use rustix::io::Errno;
    for (errno, reason) in [(Errno::MFILE, Shortage::Descriptors), (Errno::AGAIN, Shortage::Threads)] {
        let deliverer = guarded(Egress::default(), Fake(move |_: &str| Err(errno.into())));
        let attempted = deliverer.attempt(&timers::http("http://good.example/", ""), 1, Prepared::default()).await;
        assert_eq!(attempted, Attempted { outcome: Outcome::NotAttempted { reason }, record: None, trace: None });
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_name_cannot_be_looked_up_for_others_of_its_tenant_is_no_attempt() {
    let names = Stuck::default();
    let deliverer = guarded(Egress::default(), names.clone());
    let timer = |number: usize| timers::http(&format!("http://slow-{number}.example/"), r#","timeout":"1s""#);
    let mut begun = 0;
    while names.0.lock().unwrap().len() == begun {
        // The lookup begins, and no call waits for it.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(1), deliverer.prepare(&timer(begun))).await;
        begun += 1;
    }
    let started = tokio::time::Instant::now();
    let next = timer(begun);
    let prepared = deliverer.prepare(&next).await;
    assert_eq!(started.elapsed().as_secs(), 5, "longer than its own time");
    let attempted = deliverer.attempt(&next, 1, prepared).await;
    assert_eq!(attempted, Attempted { outcome: Outcome::NotAttempted { reason: Shortage::Lookups }, record: None, trace: None });
    // One that has its own lookup fails when its own time is up.
    let own = timer(0);
    assert_eq!(failure(deliverer.attempt(&own, 1, deliverer.prepare(&own).await).await.outcome).kind, FailureKind::Timeout);
}
