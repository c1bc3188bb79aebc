//! PostgreSQL goes away while commands come in: they wait in the broker, and none is lost.

use std::{ops::Range, time::Duration};

use throwaway::{Nats, Postgres};

use crate::rig::{Account, Backend, Bus, Chance, Load, Service, beside_others, blocking, now, tolerated};

const COMMANDS_PER_SECOND: u32 = 100;
const AHEAD_MICROS: Range<i64> = 0..1_000_000;
const BEFORE: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_secs(4);
const AFTER: Duration = Duration::from_secs(1);
const DRAIN: Duration = Duration::from_secs(60);
/// Commands that were given back come again after pauses that have grown to some seconds by then.
const CAUGHT_UP_SECONDS_MAX: f64 = 25.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_come_while_postgres_is_away_all_lead_to_events() {
    let _machine = beside_others().await;
    let postgres = blocking(Postgres::start);
    let backend = Backend::postgres_at(blocking(|| postgres.create_database()));
    let nats = blocking(Nats::start);
    let mut service = Service::start_with_commands(&backend, &nats.url()).await;
    let bus = Bus::to_commands(&nats.url()).await;
    let load = Load::start(bus.clone(), COMMANDS_PER_SECOND, AHEAD_MICROS, Chance::new("commands").fork());
    tokio::time::sleep(BEFORE).await;
    blocking(|| postgres.stop_immediate());
    tokio::time::sleep(AWAY).await;
    let back = now();
    blocking(|| postgres.start_again());
    tokio::time::sleep(AFTER).await;
    let sent = load.stop().await;
    let mut events = bus.events();
    let account = Account::settle(&sent, &mut events, DRAIN).await;

    let last = events.read().await.iter().map(|message| message.at).max().unwrap_or_default();
    let caught_up = (last - back) as f64 / 1e6;
    println!("PostgreSQL was away for {AWAY:?}: {account}; the last event came {caught_up:.2} s after its return");
    assert_eq!(account.acknowledged, account.commands, "the broker was there all the time");
    assert_eq!(account.repeated, 0, "{account}");
    assert!(caught_up < tolerated(CAUGHT_UP_SECONDS_MAX), "{caught_up} s");
    assert!(service.is_running());
    service.client().wait_until_finished(DRAIN).await;
    service.stop().await;
}
