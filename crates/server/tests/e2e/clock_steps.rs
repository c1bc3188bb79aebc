//! The wall clock is set back and forward by an hour while the service runs: nothing early, nothing twice, nothing stuck. Beside a
//! database with a clock of its own, nothing is fired by a clock that differs from it.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use serde_json::json;

use crate::rig::{
    Backend, Client, FakeTime, Receiver, Reply, Service, beside_others, callback_to, eventually, instant, micros, now,
};

const MINUTE_MICROS: i64 = 60_000_000;
const GROUP: usize = 20;
/// The loop looks at the clock at least once a second; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(8);
/// A call that is under way while the clock steps, and for longer than the service takes to look for calls that were left behind (5 s).
const LONG_CALL: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_only_clock_steps_nothing_is_early_nothing_twice_nothing_stuck() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let receiver = Receiver::replying(|call| if call.path == "/long" { Reply::OkAfter(LONG_CALL) } else { Reply::Status(200) });
    let time = FakeTime::new();
    let mut service = Service::start_at(&backend, &time, &[("MIN_DELAY", "0s")]).await;
    let steps = Steps { client: service.client(), receiver, time };
    let begun = now();

    let soon = steps.register("soon", begun + 4_000_000).await;
    let half_hour = steps.register("half-hour", begun + 30 * MINUTE_MICROS).await;
    let two_hours = steps.register("two-hours", begun + 120 * MINUTE_MICROS).await;

    steps.step_to("-1h", -60).await;
    steps.fires_new_timers("after the step back").await;
    // They would be due by now, had the clock not been set back.
    crate::rig::wait_for_wall(begun + 5_000_000).await;
    steps.fires_new_timers("still an hour behind").await;
    steps.have_fired(&[]);

    steps.step_to("+0", 0).await;
    steps.wait_for(&soon).await;
    steps.have_fired(&[&soon]);

    // The lease of a call under way must not seem to have run out because the clock says that an hour has passed.
    let long = steps.register("long", now() + 300_000).await;
    steps.wait_for(&long).await;
    steps.step_to("+1h", 60).await;
    steps.wait_for(&half_hour).await;
    steps.fires_new_timers("after the step forward").await;
    steps.have_fired(&[&soon, &long, &half_hour]);
    eventually("the calls under way are done", LONG_CALL + SOON, async || {
        (steps.client.count("executing").await == 0).then_some(())
    })
    .await;
    steps.have_fired(&[&soon, &long, &half_hour]);

    steps.step_to("+0", 0).await;
    steps.fires_new_timers("after the second step back").await;
    steps.have_fired(&[&soon, &long, &half_hour]);
    for id in &two_hours {
        assert_eq!(steps.client.timer(id).await["status"], "pending");
    }
    let calls = steps.receiver.calls();
    let ids: HashSet<&str> = calls.iter().map(|call| call.timer_id()).collect();
    assert_eq!(ids.len(), calls.len(), "a timer fired twice");
    println!("{}: four steps of an hour, {} calls, none early, none twice", backend.name(), calls.len());
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_clock_differs_from_the_databases_nothing_fires_and_afterwards_everything_once() {
    let _machine = beside_others().await;
    let backend = Backend::postgres();
    let time = FakeTime::new();
    let mut service = Service::start_at(&backend, &time, &[("MIN_DELAY", "0s")]).await;
    let steps = Steps { client: service.client(), receiver: Receiver::start(), time };
    let begun = now();
    let half_hour = steps.register("half-hour", begun + 30 * MINUTE_MICROS).await;
    steps.fires_new_timers("before any step").await;

    let mut fired = Vec::new();
    for (offset, minutes) in [("-1h", -60), ("+1h", 60)] {
        let soon = steps.register("soon", now() + 1_500_000).await;
        steps.step_to(offset, minutes).await;
        steps.says_that_it_owns_nothing(minutes).await;
        // They are due now by the true time, and those of the half hour are due by the service's.
        crate::rig::wait_for_wall(now() + 2_500_000).await;
        steps.says_that_it_owns_nothing(minutes).await;
        steps.have_fired(&fired.iter().collect::<Vec<_>>());

        steps.step_to("+0", 0).await;
        steps.wait_for(&soon).await;
        fired.push(soon);
        steps.have_fired(&fired.iter().collect::<Vec<_>>());
        steps.fires_new_timers("after a step and back").await;
        assert_eq!(steps.client.get("/healthz").await.status, 200);
    }
    for id in &half_hour {
        assert_eq!(steps.client.timer(id).await["status"], "pending");
    }
    service.stop().await;
}

struct Steps {
    client: Client,
    receiver: Receiver,
    time: FakeTime,
}

impl Steps {
    /// Sets the clock, and returns once the service has it.
    async fn step_to(&self, offset: &str, minutes: i64) {
        self.time.set(offset);
        eventually("the service has the new time", SOON, async || {
            let theirs = micros(self.client.get("/healthz").await.json()["data"]["timestamp"].as_str()?);
            let off_by = theirs - now() - minutes * MINUTE_MICROS;
            (off_by.abs() < 10_000_000).then_some(())
        })
        .await;
    }

    async fn says_that_it_owns_nothing(&self, minutes: i64) {
        eventually("/healthz says that the clock is wrong and nothing is owned", SOON, async || {
            let health = self.client.get("/healthz").await;
            let data = health.json()["data"].clone();
            let skew = data["clock_skew_seconds"].as_f64()?;
            let is_known = (skew - (minutes * 60) as f64).abs() < 1.0;
            (health.status == 500 && data["shards"] == 0 && is_known).then_some(())
        })
        .await;
    }

    async fn register(&self, group: &str, at: i64) -> HashSet<String> {
        let timer =
            json!({"execute_at": instant(at), "callback": callback_to(&self.receiver.url(&format!("/{group}")), &json!(1))});
        join_all((0..GROUP).map(async |_| self.client.create(&timer).await)).await.into_iter().collect()
    }

    /// New timers fire as if nothing had happened, by the service's own clock.
    async fn fires_new_timers(&self, when: &str) {
        let timer = json!({"delay": "500ms", "callback": callback_to(&self.receiver.url("/new"), &json!(when))});
        let asked = now();
        let ids: HashSet<String> =
            join_all((0..GROUP).map(async |_| self.client.create(&timer).await)).await.into_iter().collect();
        self.wait_for(&ids).await;
        for call in self.receiver.calls().iter().filter(|call| ids.contains(call.timer_id())) {
            assert!(call.arrived >= asked + 500_000, "early, {when}: {call:?}");
        }
    }

    async fn wait_for(&self, ids: &HashSet<String>) {
        eventually("these timers have fired", SOON, async || {
            let fired: HashSet<String> = self.receiver.calls().iter().map(|call| call.timer_id().to_owned()).collect();
            ids.is_subset(&fired).then_some(())
        })
        .await;
    }

    /// Of the groups that were registered for a fixed time, exactly these have fired, each timer once.
    fn have_fired(&self, groups: &[&HashSet<String>]) {
        let calls = self.receiver.calls();
        let fired: Vec<&str> = calls.iter().filter(|call| call.path != "/new").map(|call| call.timer_id()).collect();
        let expected: HashSet<&str> = groups.iter().flat_map(|group| group.iter().map(String::as_str)).collect();
        let distinct: HashSet<&str> = fired.iter().copied().collect();
        assert_eq!(distinct, expected);
        assert_eq!(fired.len(), expected.len(), "a timer fired twice");
    }
}
