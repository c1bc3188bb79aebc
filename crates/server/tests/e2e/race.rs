//! Cancels and updates that arrive just when the timer is due: whichever wins, what was answered is what happens.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::rig::{
    Answer, Backend, Call, Chance, Client, Receiver, Service, callback_to, eventually, for_each_store, heavy, instant, now,
    wait_for_wall,
};

/// How many races there are of each kind.
const RACES: usize = 200;
const LEAD_MICROS: i64 = 5_000_000;
const BETWEEN_MICROS: i64 = 5_000;
/// How far from the due time a cancel or update is sent, to both sides.
const AROUND_MICROS: i64 = 50_000;
/// One in so many is sent long before the due time, and one long after it: each side wins some, however busy the machine is.
const CERTAIN_ONE_IN: usize = 20;
const CERTAIN_MICROS: i64 = 1_500_000;

for_each_store!(mariadb too:
    an_acknowledged_cancel_is_never_followed_by_a_call_however_close_it_was,
    an_acknowledged_pause_is_never_followed_by_a_call_however_close_it_was,
    the_old_version_never_fires_after_an_acknowledged_update_however_close_it_was,
);

async fn an_acknowledged_cancel_is_never_followed_by_a_call_however_close_it_was(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;

    let answers = race(&service.client(), &receiver, async |client, id| client.try_cancel(&id).await.expect("an answer")).await;
    service.client().wait_until_finished(Duration::from_secs(20)).await;

    let calls = calls_by_timer(&receiver);
    let (mut canceled, mut refused) = (0, 0);
    for (id, answer) in &answers {
        let calls = calls.get(id).map_or(0, Vec::len);
        match answer.status {
            200 => {
                canceled += 1;
                assert_eq!(calls, 0, "{id} was called although its cancel was acknowledged");
            }
            400 => {
                refused += 1;
                assert_met(answer, "cancel");
                assert_eq!(calls, 1, "{id}: {}", answer.text);
            }
            _ => panic!("{id}: {answer:?}"),
        }
    }
    println!("{}: cancels around the due time: {canceled} won, {refused} came too late", backend.name());
    assert!(canceled > 0 && refused > 0, "no race: {canceled} canceled, {refused} refused");
    assert_eq!(service.client().count("canceled").await, canceled);
    service.stop().await;
}

async fn an_acknowledged_pause_is_never_followed_by_a_call_however_close_it_was(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let client = service.client();

    let pause = async |client: Client, id: String| {
        client.try_send("POST", &format!("/timers/{id}/pause"), None).await.expect("an answer")
    };
    let answers = race(&client, &receiver, pause).await;
    eventually("no timer is pending or executing any more", Duration::from_secs(20), async || {
        (client.count("pending").await == 0 && client.count("executing").await == 0).then_some(())
    })
    .await;

    let calls = calls_by_timer(&receiver);
    let (mut paused, mut refused) = (0, 0);
    for (id, answer) in &answers {
        let calls = calls.get(id).map_or(0, Vec::len);
        match answer.status {
            200 => {
                paused += 1;
                assert_eq!(calls, 0, "{id} was called although its pause was acknowledged");
            }
            409 => {
                refused += 1;
                assert_met(answer, "pause");
                assert_eq!(calls, 1, "{id}: {}", answer.text);
            }
            _ => panic!("{id}: {answer:?}"),
        }
    }
    println!("{}: pauses around the due time: {paused} won, {refused} came too late", backend.name());
    assert!(paused > 0 && refused > 0, "no race: {paused} paused, {refused} refused");
    assert_eq!(client.count("paused").await, paused);
    service.stop().await;
}

async fn the_old_version_never_fires_after_an_acknowledged_update_however_close_it_was(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::start();
    let mut service = Service::start(&backend).await;
    let url = receiver.url("/race");

    let answers = race(&service.client(), &receiver, async |client, id| {
        let new = json!({"delay": "300ms", "callback": callback_to(&url, &json!({"version": "new"}))});
        client.try_update(&id, &new).await.expect("an answer")
    })
    .await;
    service.client().wait_until_finished(Duration::from_secs(20)).await;

    let calls = calls_by_timer(&receiver);
    let (mut updated, mut refused) = (0, 0);
    for (id, answer) in &answers {
        let versions: Vec<Value> = calls.get(id).into_iter().flatten().map(|call| call.json()["version"].clone()).collect();
        match answer.status {
            200 => {
                updated += 1;
                assert_eq!(versions, ["new"], "{id} after an acknowledged update");
            }
            400 => {
                refused += 1;
                assert_met(answer, "update");
                assert_eq!(versions, ["old"], "{id}: {}", answer.text);
            }
            _ => panic!("{id}: {answer:?}"),
        }
    }
    println!("{}: updates around the due time: {updated} won, {refused} came too late", backend.name());
    assert!(updated > 0 && refused > 0, "no race: {updated} updated, {refused} refused");
    service.stop().await;
}

/// Registers the timers, and does something to each of them around the instant at which it is due.
async fn race(client: &Client, receiver: &Receiver, act: impl AsyncFn(Client, String) -> Answer) -> Vec<(String, Answer)> {
    let first = now() + LEAD_MICROS;
    let url = receiver.url("/race");
    let register = async |n: usize| {
        let at = first + BETWEEN_MICROS * n as i64;
        let old = callback_to(&url, &json!({"version": "old"}));
        (client.create(&json!({"execute_at": instant(at), "callback": old})).await, at)
    };
    let timers = futures_util::future::join_all((0..RACES).map(register)).await;
    let mut chance = Chance::new("races around the due time");
    let offset = |n: usize| match n % CERTAIN_ONE_IN {
        0 => -CERTAIN_MICROS,
        1 => CERTAIN_MICROS,
        _ => chance.micros(-AROUND_MICROS..AROUND_MICROS),
    };
    let offsets: Vec<i64> = (0..RACES).map(offset).collect();
    let race_one = async |((id, at), offset): ((String, i64), i64)| {
        wait_for_wall(at + offset).await;
        let answer = act(client.clone(), id.clone()).await;
        (id, answer)
    };
    futures_util::future::join_all(timers.into_iter().zip(offsets).map(race_one)).await
}

fn calls_by_timer(receiver: &Receiver) -> HashMap<String, Vec<Call>> {
    let mut by_timer: HashMap<String, Vec<Call>> = HashMap::new();
    for call in receiver.calls() {
        by_timer.entry(call.timer_id().to_owned()).or_default().push(call);
    }
    by_timer
}

fn assert_met(answer: &Answer, verb: &str) {
    let met = ["executing", "completed"].map(|status| format!("cannot {verb} timer with status '{status}'"));
    assert!(met.contains(&answer.message()), "{}", answer.text);
}
