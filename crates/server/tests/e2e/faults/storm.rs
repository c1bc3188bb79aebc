//! Many callers register the same timer with different nodes at once: there is one.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt, future::join_all, stream};
use serde_json::json;

use crate::rig::{Client, Nodes, Receiver, callback_to, heavy, instant, now, scaled};

const NODES: usize = 3;
const KEYS: usize = 300;
const CALLERS: usize = 16;
const KEYS_AT_ONCE: usize = 4;
const AHEAD_MICROS: i64 = 15_000_000;
const DRAIN: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_creates_of_one_key_one_makes_a_timer_and_the_others_are_told() {
    let _machine = heavy().await;
    let (nodes, receiver) = (Nodes::start(NODES).await, Receiver::start());
    let clients = nodes.clients();
    let url = receiver.url("/storm");
    let begun = now();
    let (clients, url) = (&clients, &url);
    let ids: Vec<String> =
        stream::iter(0..scaled(KEYS)).map(|number| storm(clients, url, number)).buffer_unordered(KEYS_AT_ONCE).collect().await;
    let took = (now() - begun) as f64 / 1e6;
    let keys = scaled(KEYS);
    println!("one key from {CALLERS} callers at once: {keys} keys in {took:.1} s, one timer each");
    let distinct: HashSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(distinct.len(), keys);
    let calls = receiver.wait_for(keys, DRAIN).await;
    clients[0].wait_until_finished(DRAIN).await;
    let called: HashSet<&str> = calls.iter().map(|call| call.timer_id()).collect();
    assert_eq!((called, receiver.count()), (distinct, keys), "each once");
    nodes.stop().await;
}

/// Every caller sends the same, or every other one something else. The id of the one timer that comes of it.
async fn storm(clients: &[Client], url: &str, number: usize) -> String {
    let at = instant(now() + AHEAD_MICROS);
    let timer =
        |content: usize| json!({"execute_at": at, "key": format!("key-{number}"), "callback": callback_to(url, &json!(content))});
    let contents = if number.is_multiple_of(2) { 1 } else { 2 };
    let create = async |caller: usize| {
        let content = caller % contents;
        let answer = clients[(number + caller) % clients.len()].try_create(&timer(content)).await.expect("an answer");
        (content, answer)
    };
    let answers = join_all((0..CALLERS).map(create)).await;
    let made: Vec<_> = answers.iter().filter(|(_, answer)| answer.status == 201).collect();
    let [(winner, first)] = made[..] else { panic!("{} of {CALLERS} made key-{number}: {answers:?}", made.len()) };
    for (content, answer) in &answers {
        match answer.status {
            201 => {}
            200 => assert_eq!((content, answer.id()), (winner, first.id()), "the same timer: {answers:?}"),
            409 => assert_ne!(content, winner, "the same content is no conflict: {answers:?}"),
            _ => panic!("{answer:?}"),
        }
    }
    first.id()
}
