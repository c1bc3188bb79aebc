//! `kill -9` at random under load: what was acknowledged holds.

use std::{sync::Arc, time::Duration};

use crate::{
    history::{Apis, Fault, History, Load, Mixture},
    rig::{Backend, Chance, Receiver, Reply, Service, by_tier, for_each_store, heavy, now},
};

/// On PostgreSQL each costs a few seconds: a dead node's shards have no owner until its lease has run out.
const KILLS: usize = 20;
const KILLS_IN_A_BUILD: usize = 4;
/// How many calls of one tenant to one destination may be in flight, of which there is only one each here, and as many again that
/// are over and not on record.
const IN_FLIGHT: usize = 2 * 256;
/// Every call takes a moment, so that a kill always finds some under way.
const CALL_TIME: Duration = Duration::from_millis(30);
const TAKE_OVER: Duration = Duration::from_secs(15);
const DRAIN: Duration = Duration::from_secs(60);

for_each_store!(mariadb too: what_was_acknowledged_survives_kills_at_random_under_load);

async fn what_was_acknowledged_survives_kills_at_random_under_load(backend: Backend) {
    let _machine = heavy().await;
    let receiver = Receiver::replying(|_| Reply::OkAfter(CALL_TIME));
    let mut service = Service::start(&backend).await;
    let history = Arc::new(History::new(CALL_TIME));
    let (mut chance, count) = (Chance::new("kills under load"), by_tier(KILLS, KILLS_IN_A_BUILD));
    let apis = Apis::new(vec![service.client()]);
    let load = Load::start(&apis, receiver.url("/crash"), &history, Mixture::dense(), chance.seed());

    let mut kills = Vec::new();
    for _ in 0..count {
        // Only a service that has begun to fire can be killed while it fires.
        receiver.wait_for(receiver.count() + 20, TAKE_OVER).await;
        tokio::time::sleep(chance.millis(0..700)).await;
        service.kill();
        kills.push(Fault::kill(now()));
        service.start_again().await;
    }
    load.stop().await;
    service.client().wait_until_finished(DRAIN).await;

    history.read_back(&service.client()).await;
    let summary = history.check(&receiver.calls(), &kills);
    println!("{}: {count} kills: {summary}", backend.name());
    assert!((1..=count * IN_FLIGHT).contains(&summary.repeated), "what was under way at the kills is called again: {summary}");
    assert!(summary.created > 10 * count, "too little load to mean anything: {summary}");
    assert!(summary.canceled > 0 && summary.updated > 0, "{summary}");
    service.stop().await;
}
