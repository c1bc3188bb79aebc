use serde_json::{Value, json};

use super::{Backend, Receiver, Service, callback_to, now};

/// Many pending timers that nobody has to register one by one.
pub struct Crowd<'a> {
    pub timers: usize,
    pub payload: &'a Value,
    /// When the n-th is due, in microseconds, as both databases understand it.
    pub at: String,
}

/// Copies one timer that the service has registered itself. Ids are as the service makes them: in the order of creation, and random
/// at their end.
pub async fn fill(backend: &Backend, receiver: &Receiver, crowd: &Crowd<'_>) {
    let Crowd { timers, payload, at } = crowd;
    let mut service = Service::start(backend).await;
    service.client().create(&json!({"delay": "1000d", "callback": callback_to(&receiver.url("/crowd"), payload)})).await;
    service.stop().await;
    let (now, last) = (now(), timers - 1);
    let columns = "namespace, key, callback_type, delivery, revision, created_at, updated_at, fingerprint, correlation_id, retry_policy, \
                   metadata, callback_config";
    let sqlite = format!(
        "PRAGMA synchronous = OFF;
         BEGIN;
         CREATE TEMP TABLE copy AS
           WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {last})
           SELECT unhex(printf('%012x', {now} / 1000 + n / 100)) || unhex('7000') || randomblob(8) AS id, {at} AS at
           FROM n;
         INSERT INTO definition (id, asked, execute_at, execute_minute, due_minute, {columns})
           SELECT CAST(copy.id AS BLOB), copy.at, copy.at, copy.at / 60000000, copy.at / 60000000, {columns}
           FROM copy, (SELECT {columns} FROM definition LIMIT 1) ORDER BY copy.id;
         INSERT INTO due (shard, minute, id, at, attempt, destination)
           SELECT 0, copy.at / 60000000, CAST(copy.id AS BLOB), copy.at, 0, destination
           FROM copy, (SELECT destination FROM due LIMIT 1) ORDER BY 2, 3;
         UPDATE tally SET timers = timers + {timers} WHERE namespace = 'default' AND status = 'pending';
         COMMIT;
         PRAGMA wal_checkpoint(TRUNCATE);"
    );
    let postgres = format!(
        "CREATE TEMP TABLE copy AS
           SELECT (lpad(to_hex({now} / 1000 + n / 100), 12, '0') || '7000' || substr(md5(n::text), 1, 16))::uuid AS id, {at} AS at
           FROM generate_series(0::bigint, {last}) AS n;
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
