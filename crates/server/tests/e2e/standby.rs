//! Two services on one PostgreSQL: one owns the shards, the other stands by and takes over, and nobody is called twice for it.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::rig::{
    Backend, Call, Client, Receiver, Reply, Service, alone, callback_to, eventually, instant, micros, now, wait_for_wall,
};

const TIMERS: usize = 100;
const BETWEEN_MICROS: i64 = 40_000;
/// An owner learns of what others registered by its sweep, once a second.
const HEARD_OF_SECONDS_MAX: f64 = 2.0;
/// Five are promised: the lease of a shard (3 s) and the taking up. The rest is for a busy machine.
const TAKE_OVER_SECONDS_MAX: f64 = 8.0;
const PATIENCE: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_secs(6);
const CALL_TIME: Duration = Duration::from_millis(200);

/// The owner of all shards, and one that has none.
struct Pair {
    backend: Backend,
    owner: Service,
    standby: Service,
}

impl Pair {
    async fn start() -> Self {
        let backend = Backend::postgres();
        let owner = Service::start(&backend).await;
        let all = shards(&backend);
        eventually("the first service owns every shard", PATIENCE, async || {
            (shards_held(&owner.client()).await == all).then_some(())
        })
        .await;
        let standby = Service::start(&backend).await;
        assert_eq!(shards_held(&standby.client()).await, 0, "the second stands by");
        Self { backend, owner, standby }
    }
}

fn shards(backend: &Backend) -> u64 {
    throwaway::postgres().query(backend.url(), "SELECT shards FROM timer_setup").parse().expect("a number of shards")
}

async fn shards_held(client: &Client) -> u64 {
    let health = client.get("/healthz").await.json();
    health["data"]["shards"].as_u64().unwrap_or_else(|| panic!("shards in {health}"))
}

/// The shard of a timer: the last two bytes of its id.
fn shard(id: &str, shards: u64) -> u64 {
    u64::from_str_radix(&id[id.len() - 4..], 16).expect("an id ends with hexadecimal digits") % shards
}

/// Registers timers from `first` on, at even distances; when each of them is due.
async fn register(client: &Client, url: &str, first: i64) -> HashMap<String, i64> {
    let one = async |n: usize| {
        let at = first + BETWEEN_MICROS * n as i64;
        (client.create(&json!({"execute_at": instant(at), "callback": callback_to(url, &json!(n))})).await, at)
    };
    join_all((0..TIMERS).map(one)).await.into_iter().collect()
}

/// The first call of each of these timers. Fails the test when one of them was never called.
fn first_calls<'a>(calls: &'a [Call], due: &HashMap<String, i64>) -> HashMap<&'a str, &'a Call> {
    let mut first = HashMap::new();
    for call in calls.iter().filter(|call| due.contains_key(call.timer_id())) {
        first.entry(call.timer_id()).or_insert(call);
        assert!(call.arrived >= due[call.timer_id()], "early: {call:?}");
    }
    let lost: Vec<_> = due.keys().filter(|id| !first.contains_key(id.as_str())).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    first
}

/// Seconds from when a timer was due, or from `from` if that is later, to its first call, at the worst.
fn longest_wait(calls: &[Call], due: &HashMap<String, i64>, from: i64) -> f64 {
    let waits = first_calls(calls, due).into_iter().map(|(id, call)| call.arrived - due[id].max(from));
    waits.max().expect("there were timers") as f64 / 1e6
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_registered_with_the_standby_are_fired_by_the_owner() {
    let _machine = alone().await;
    let mut pair = Pair::start().await;
    let receiver = Receiver::start();
    let client = pair.standby.client();
    let mut due = register(&client, &receiver.url("/"), now() + 500_000).await;
    // Half of them are due at once, so that the owner cannot have read them ahead.
    for _ in 0..TIMERS {
        let timer = json!({"delay": "1ms", "callback": callback_to(&receiver.url("/"), &json!(1))});
        let answer = client.post(&timer.to_string()).await;
        due.insert(answer.id(), micros(answer.json()["data"]["execute_at"].as_str().expect("a due time")));
        wait_for_wall(now() + BETWEEN_MICROS / 2).await;
    }
    receiver.wait_for(due.len(), PATIENCE).await;
    client.wait_until_finished(PATIENCE).await;

    let calls = receiver.calls();
    let longest = longest_wait(&calls, &due, 0);
    println!("PostgreSQL: registered with the standby, fired by the owner {longest:.2} s after they were due at the worst");
    assert_eq!(calls.len(), due.len(), "none twice");
    assert!(longest < HEARD_OF_SECONDS_MAX, "{longest} s");
    assert_eq!(pair.owner.client().metric("timer_fired_total").await, Some(due.len() as f64), "by the owner");
    pair.standby.stop().await;
    pair.owner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standby_fires_everything_after_the_owner_was_killed() {
    let _machine = alone().await;
    let mut pair = Pair::start().await;
    let receiver = Receiver::start();
    let client = pair.standby.client();
    let due = register(&client, &receiver.url("/"), now() + 500_000).await;
    receiver.wait_for(TIMERS / 4, PATIENCE).await;
    pair.owner.kill();
    let killed = now();
    client.wait_until_finished(PATIENCE).await;

    let calls = receiver.calls();
    let before = calls.iter().filter(|call| call.arrived <= killed).count();
    let longest = longest_wait(&calls, &due, killed);
    println!("PostgreSQL: {before} timers fired before a kill, the last of the others {longest:.2} s after it could");
    assert!(before < TIMERS, "the kill came too late to mean anything");
    assert!(longest < TAKE_OVER_SECONDS_MAX, "{longest} s");
    assert_repeated_only_around(&calls, killed);
    pair.standby.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_stops_with_a_call_under_way_hands_over_the_other_shards_at_once() {
    const HANGS: Duration = Duration::from_secs(8);
    let _machine = alone().await;
    let mut pair = Pair::start().await;
    let receiver = Receiver::replying(|call| if call.path == "/hangs" { Reply::OkAfter(HANGS) } else { Reply::Status(200) });
    let client = pair.standby.client();
    let hanging = client.create(&json!({"delay": "1ms", "callback": callback_to(&receiver.url("/hangs"), &json!(1))})).await;
    receiver.wait_for(1, PATIENCE).await;
    let hangs_until = now() + HANGS.as_micros() as i64;
    let mut due = register(&client, &receiver.url("/"), now() + 500_000).await;

    pair.owner.ask_to_stop();
    let asked = now();
    let shards = shards(&pair.backend);
    let kept = shard(&hanging, shards);
    let in_kept_shard: HashSet<String> = due.keys().filter(|id| shard(id, shards) == kept).cloned().collect();
    let others: HashMap<String, i64> =
        due.iter().filter(|(id, _)| !in_kept_shard.contains(*id)).map(|(id, at)| (id.clone(), *at)).collect();
    receiver.wait_for(1 + others.len(), PATIENCE).await;
    assert!(pair.owner.is_running() && now() < hangs_until, "the call still hangs");
    let longest = longest_wait(&receiver.calls(), &others, asked);
    println!(
        "PostgreSQL: while its last call hung, {} timers of a stopping owner were fired by the standby, {longest:.2} s after they could",
        others.len()
    );
    assert!(longest < HEARD_OF_SECONDS_MAX, "{longest} s");

    let status = pair.owner.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{status}");
    client.wait_until_finished(PATIENCE).await;
    due.insert(hanging.clone(), 0);
    first_calls(&receiver.calls(), &due);
    assert_eq!(receiver.count(), TIMERS + 1, "none twice");
    assert_eq!(client.timer(&hanging).await["status"], "completed");
    pair.standby.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_paused_calls_nobody_whom_the_standby_has_called() {
    let _machine = alone().await;
    let mut pair = Pair::start().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let client = pair.standby.client();
    // Some are due before the pause, some in it, and some after it.
    let mut due = register(&client, &receiver.url("/"), now() + 500_000).await;
    due.extend(register(&client, &receiver.url("/"), now() + 5_500_000).await);
    receiver.wait_for(TIMERS / 4, PATIENCE).await;
    pair.owner.signal("STOP");
    let paused = now();
    wait_for_wall(paused + PAUSE.as_micros() as i64).await;
    pair.owner.signal("CONT");
    receiver.wait_for(2 * TIMERS, PATIENCE).await;
    client.wait_until_finished(PATIENCE).await;

    let calls = receiver.calls();
    let longest = longest_wait(&calls, &due, paused);
    let repeated = assert_repeated_only_around(&calls, paused);
    println!(
        "PostgreSQL: with the owner paused for {PAUSE:?} the last of {} timers fired {longest:.2} s after it could; \
         {repeated} calls were under way and made again",
        due.len()
    );
    assert!(longest < TAKE_OVER_SECONDS_MAX, "{longest} s");
    for service in [&pair.owner, &pair.standby] {
        assert_eq!(service.client().get("/healthz").await.status, 200);
    }
    let states: Vec<Value> = join_all(due.keys().map(async |id| client.timer(id).await["status"].clone())).await;
    assert!(states.iter().all(|status| status == "completed"), "{states:?}");
    pair.standby.stop().await;
    pair.owner.stop().await;
}

/// A call that is made again must have been on the wire at that instant, and is made again once and under the same id. Says how
/// many were.
fn assert_repeated_only_around(calls: &[Call], instant: i64) -> usize {
    const UNRECORDED_MICROS_MAX: i64 = CALL_TIME.as_micros() as i64 + 1_000_000;
    const READ_LATE_MICROS_MAX: i64 = 20_000;
    let mut by_timer: HashMap<&str, Vec<&Call>> = HashMap::new();
    for call in calls {
        by_timer.entry(call.timer_id()).or_default().push(call);
    }
    let repeated = by_timer.values().filter(|calls| calls.len() > 1);
    for calls in repeated.clone() {
        let on_the_wire = instant - UNRECORDED_MICROS_MAX..=instant + READ_LATE_MICROS_MAX;
        assert!(calls.len() == 2 && on_the_wire.contains(&calls[0].arrived), "called again: {calls:?}, around {instant}");
        assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    }
    repeated.count()
}
