//! A million pending timers: the start reads only what it needs.

use std::{collections::HashSet, time::Duration};

use serde_json::json;

use crate::rig::{Backend, Receiver, Service, alone, callback_to, for_each_store, now};

const PENDING: usize = 1_000_000;
const OVERDUE: usize = 10;
/// What of them must be seen in memory before its size is looked at.
const NEAR_TERM_MIN: f64 = 50_000.0;
const FIRST_CALL_SECONDS_MAX: f64 = 5.0;
const MEMORY_MIB_MAX: f64 = 300.0;

for_each_store!(with_a_million_pending_timers_the_first_overdue_call_comes_at_once);

async fn with_a_million_pending_timers_the_first_overdue_call_comes_at_once(backend: Backend) {
    let _machine = alone().await;
    let receiver = Receiver::start();
    fill(&backend, &receiver).await;

    let begun = now();
    let mut service = Service::begin(&backend, &[]);
    let calls = receiver.wait_for(OVERDUE, Duration::from_secs(60)).await;
    let first = (calls[0].arrived - begun) as f64 / 1e6;
    let all = (calls[OVERDUE - 1].arrived - begun) as f64 / 1e6;
    service.wait_until_healthy().await;
    let client = service.client();
    crate::rig::eventually("the near term is in memory", Duration::from_secs(30), async || {
        client.metric("timer_pending_in_memory").await.filter(|entries| *entries > NEAR_TERM_MIN)
    })
    .await;
    let peak = service.peak_mib();

    println!(
        "{}: with {PENDING} pending, the first overdue call came {first:.2} s after the start of the process, the last of {OVERDUE} \
         after {all:.2} s; memory up to {peak:.0} MiB",
        backend.name()
    );
    assert_eq!(receiver.calls().iter().map(|call| call.timer_id().to_owned()).collect::<HashSet<_>>().len(), OVERDUE);
    assert_eq!(receiver.count(), OVERDUE, "only what is overdue has fired");
    assert!(first < FIRST_CALL_SECONDS_MAX, "{first} s");
    assert!(peak < MEMORY_MIB_MAX, "{peak} MiB");
    service.stop().await;
}

/// Copies one timer that the service has registered itself. The copies are due over half an hour, from two minutes on, so that
/// a part of them belongs to the near term; a few are overdue.
async fn fill(backend: &Backend, receiver: &Receiver) {
    let mut service = Service::start(backend).await;
    service.client().create(&json!({"delay": "1000d", "callback": callback_to(&receiver.url("/million"), &json!(1))})).await;
    service.stop().await;
    let now = now();
    let soonest = now + 120_000_000;
    let overdue = now - 60_000_000;
    let step = 1_800_000_000 / PENDING;
    let last = PENDING - 1;
    let columns = "namespace, key, callback_type, delivery, revision, created_at, updated_at, fingerprint, correlation_id, retry_policy, \
                   metadata, callback_config";
    // Ids in the order of creation, as the service makes them, and random at their end.
    let sqlite = format!(
        "PRAGMA synchronous = OFF;
         BEGIN;
         CREATE TEMP TABLE copy AS
           WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {last})
           SELECT unhex(printf('%012x', {now} / 1000 + n / 100)) || unhex('7000') || randomblob(8) AS id,
                  CASE WHEN n < {OVERDUE} THEN {overdue} + n ELSE {soonest} + n * {step} END AS at
           FROM n;
         INSERT INTO definition (id, asked, execute_at, execute_minute, due_minute, {columns})
           SELECT CAST(copy.id AS BLOB), copy.at, copy.at, copy.at / 60000000, copy.at / 60000000, {columns}
           FROM copy, (SELECT {columns} FROM definition LIMIT 1) ORDER BY copy.id;
         INSERT INTO due (shard, minute, id, at, attempt, destination)
           SELECT 0, copy.at / 60000000, CAST(copy.id AS BLOB), copy.at, 0, destination
           FROM copy, (SELECT destination FROM due LIMIT 1) ORDER BY 2, 3;
         UPDATE tally SET timers = timers + {PENDING} WHERE namespace = 'default' AND status = 'pending';
         COMMIT;
         PRAGMA wal_checkpoint(TRUNCATE);"
    );
    let postgres = format!(
        "CREATE TEMP TABLE copy AS
           SELECT (lpad(to_hex({now} / 1000 + n / 100), 12, '0') || '7000' || substr(md5(n::text), 1, 16))::uuid AS id,
                  CASE WHEN n < {OVERDUE} THEN {overdue} + n ELSE {soonest} + n * {step}::bigint END AS at
           FROM generate_series(0, {last}) AS n;
         INSERT INTO definition (id, asked, execute_at, {columns})
           SELECT copy.id, copy.at, copy.at, {columns}
           FROM copy, (SELECT {columns} FROM definition LIMIT 1) AS one;
         INSERT INTO due (shard, id, at, attempt, destination)
           SELECT (get_byte(uuid_send(copy.id), 14) * 256 + get_byte(uuid_send(copy.id), 15)) % shards,
                  copy.id, copy.at, 0, destination
           FROM copy, timer_setup, (SELECT destination FROM due LIMIT 1) AS one;"
    );
    backend.execute(&sqlite, &postgres);
}
