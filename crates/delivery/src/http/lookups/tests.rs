//! In the time of the runtime, which stands still while there is something to do.

use std::{collections::BTreeMap, net::Ipv4Addr};

use super::{super::names::Lookup, *};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Counts what it is asked. Hosts whose name begins with `slow` are answered when the gate is open.
#[derive(Clone)]
struct Gated {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    gate: watch::Sender<bool>,
}

impl Gated {
    fn new() -> Self {
        Self { asked: Arc::default(), gate: watch::Sender::new(false) }
    }

    fn asked(&self, host: &str) -> usize {
        self.asked.lock().unwrap().get(host).copied().unwrap_or_default()
    }
}

impl Names for Gated {
    fn lookup(&self, host: String) -> Lookup {
        *self.asked.lock().unwrap().entry(host.clone()).or_default() += 1;
        let mut gate = self.gate.subscribe();
        Box::pin(async move {
            if host.starts_with("slow") {
                gate.wait_for(|is_open| *is_open).await.unwrap();
            }
            match host.as_str() {
                "panic" => panic!("as asked"),
                host if host.ends_with("empty") => Ok(Vec::new()),
                host if host.ends_with("unknown") => Err(io::Error::other("no such name")),
                _ => Ok(vec![HERE]),
            }
        })
    }
}

/// Everybody asks for the host, and the gate opens only when they all wait.
async fn ask_together(askers: usize, lookups: &Arc<Lookups>, names: &Gated, host: &'static str) -> Vec<Answer> {
    let waiting: Vec<_> = (0..askers)
        .map(|_| {
            let lookups = Arc::clone(lookups);
            tokio::spawn(async move { lookups.addresses(host).await })
        })
        .collect();
    // Time moves only when nothing else does.
    tokio::time::sleep(Duration::from_secs(1)).await;
    names.gate.send_replace(true);
    let mut answers = Vec::new();
    for asker in waiting {
        answers.push(asker.await.unwrap());
    }
    names.gate.send_replace(false);
    answers
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_the_same_host_share_one_lookup_and_its_answer() {
    let names = Gated::new();
    let lookups = Arc::new(Lookups::new(names.clone()));
    for (host, expected) in [("slow", Ok(vec![HERE])), ("slow-empty", Ok(Vec::new())), ("slow-unknown", Err("no such name"))] {
        for answer in ask_together(50, &lookups, &names, host).await {
            assert_eq!(answer.map_err(|error| error.to_string()), expected.clone().map_err(str::to_owned), "{host}");
        }
        assert_eq!(names.asked(host), 1, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_goes_on_without_those_who_waited_and_is_not_doubled() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    for _ in 0..50 {
        assert!(timeout(Duration::from_secs(1), lookups.addresses("slow")).await.is_err());
    }
    assert_eq!((names.asked("slow"), lock(&lookups.hosts).asked.len()), (1, 1));
    names.gate.send_replace(true);
    assert_eq!(lookups.addresses("slow").await.unwrap(), [HERE]);
    assert_eq!((names.asked("slow"), lock(&lookups.hosts).asked.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn only_a_good_answer_is_kept_and_only_for_some_seconds() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    for (host, while_it_is_fresh, after_that) in [("good", 1, 2), ("empty", 3, 4), ("unknown", 3, 4)] {
        for _ in 0..3 {
            let _ = lookups.addresses(host).await;
        }
        assert_eq!(names.asked(host), while_it_is_fresh, "{host}");
        tokio::time::advance(FOUND_AGE_MAX).await;
        let _ = lookups.addresses(host).await;
        assert_eq!(names.asked(host), after_that, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_kept_answers_is_bounded() {
    let lookups = Lookups::new(Gated::new());
    let is_kept = |host: &str| lock(&lookups.hosts).found.contains_key(host);
    for number in 0..FOUND_MAX {
        lookups.addresses(&format!("host-{number}")).await.unwrap();
    }
    assert!(is_kept("host-0"));
    // When all are fresh the room is made anew; when some are old, only they go.
    lookups.addresses("fresh").await.unwrap();
    assert!(!is_kept("host-0") && is_kept("fresh"));
    for number in 1..FOUND_MAX {
        tokio::time::advance(if number == FOUND_MAX / 2 { FOUND_AGE_MAX } else { Duration::ZERO }).await;
        lookups.addresses(&format!("host-{number}")).await.unwrap();
    }
    lookups.addresses("last").await.unwrap();
    assert!(!is_kept("fresh") && is_kept(&format!("host-{}", FOUND_MAX / 2)) && is_kept("last"));
    assert!(lock(&lookups.hosts).found.len() <= FOUND_MAX);
}

#[tokio::test(start_paused = true)]
async fn when_every_slot_is_taken_a_name_waits_for_one_but_localhost_does_not() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    for number in 0..LOOKUPS_MAX {
        assert!(timeout(Duration::from_millis(1), lookups.addresses(&format!("slow-{number}"))).await.is_err());
    }
    assert_eq!(names.asked.lock().unwrap().len(), LOOKUPS_MAX);
    let started = Instant::now();
    assert_eq!(lookups.addresses("localhost").await.unwrap(), [HERE]);
    assert_eq!(started.elapsed(), Duration::ZERO);

    let refused = lookups.addresses("good").await.unwrap_err().to_string();
    assert_eq!(refused, "256 other host names are being looked up and have no answer yet");
    assert_eq!((names.asked("good"), started.elapsed().as_secs()), (0, CONNECT_MAX.as_secs()));

    let opening = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        names.gate.send_replace(true);
    };
    let (answer, ()) = tokio::join!(lookups.addresses("good"), opening);
    assert_eq!((answer.unwrap(), names.asked("good")), (vec![HERE], 1));
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_breaks_off_fails_its_askers_and_leaves_nothing_behind() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    for asked in 1..=2 {
        let error = lookups.addresses("panic").await.unwrap_err().to_string();
        assert_eq!((error.as_str(), names.asked("panic")), ("the lookup ended without an answer", asked));
    }
    assert!(lock(&lookups.hosts).asked.is_empty());
    assert_eq!(lookups.slots.available_permits(), LOOKUPS_MAX);
}
