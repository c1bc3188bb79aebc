//! In the time of the runtime, which stands still while there is something to do.

use std::{collections::BTreeMap, net::Ipv4Addr};

use domain::Namespace;

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

fn tenant(name: &str) -> TenantId {
    TenantId::of(&Namespace::parse(name).unwrap())
}

impl Lookups {
    /// The addresses of a host, for a tenant that has permits.
    async fn addresses(&self, host: &str) -> Answer {
        self.begin(host, tenant("any")).await.expect("a permit").answer().await
    }

    /// Has as many slow names looked up for a tenant as it gets permits for.
    async fn take_all_permits(&self, of: &str) -> usize {
        for number in 0.. {
            if timeout(Duration::ZERO, self.begin(&format!("slow-{of}-{number}"), tenant(of))).await.is_err() {
                return number;
            }
        }
        unreachable!("permits are limited")
    }
}

/// All calls ask for the host, and the gate opens only when they all wait.
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
async fn names_that_are_never_answered_keep_only_names_of_the_same_tenant_waiting() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    assert_eq!(lookups.take_all_permits("greedy").await, LOOKUPS_MAX / 4 * 3);
    let started = Instant::now();
    for other in ["one", "two", "three"] {
        for number in 0..100 {
            let begun = lookups.begin(&format!("{other}-{number}"), tenant(other)).await.unwrap();
            assert_eq!(begun.answer().await.unwrap(), [HERE]);
        }
    }
    assert_eq!(lookups.begin("localhost", tenant("greedy")).await.unwrap().answer().await.unwrap(), [HERE]);
    assert_eq!(started.elapsed(), Duration::ZERO);

    assert_eq!(lookups.begin("good", tenant("greedy")).await.err(), Some(Congested));
    assert_eq!((names.asked("good"), started.elapsed()), (0, PERMIT_WAIT_MAX));
    let opening = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        names.gate.send_replace(true);
    };
    let (begun, ()) = tokio::join!(lookups.begin("good", tenant("greedy")), opening);
    assert_eq!((begun.unwrap().answer().await.unwrap(), names.asked("good")), (vec![HERE], 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lookups.permits.free(), LOOKUPS_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_not_held_up_by_a_tenant_that_asks_for_it_and_has_no_permit() {
    let names = Gated::new();
    let lookups = Lookups::new(names.clone());
    lookups.take_all_permits("greedy").await;
    let mut waiting = std::pin::pin!(lookups.begin("good", tenant("greedy")));
    assert!(timeout(Duration::from_secs(1), waiting.as_mut()).await.is_err());
    let started = Instant::now();
    assert_eq!(lookups.begin("good", tenant("other")).await.unwrap().answer().await.unwrap(), [HERE]);
    assert_eq!(started.elapsed(), Duration::ZERO);
    // And what is known needs no permit.
    assert!(lookups.begin("good", tenant("greedy")).await.is_ok());
    assert!(lookups.begin("slow-greedy-0", tenant("other")).await.is_ok());
    assert_eq!((names.asked("good"), started.elapsed()), (1, Duration::ZERO));
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
    assert_eq!(lookups.permits.free(), LOOKUPS_MAX);
}
