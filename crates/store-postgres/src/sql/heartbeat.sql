-- Renews a node's lease, and reads who lives and what the node holds: rows of three kinds, one with
-- the time, one for each node, one for each shard. The reading sees the table of nodes as it was
-- before the writing, so the node itself comes from what was written.
-- $1 node, $2 name, $3 version, $4 started at, $5 whether it takes shards, $6 clock skew, $7 lease
-- in microseconds
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), beat AS (
    INSERT INTO node (id, name, version, started_at, takes_shards, skew_micros, lease_until)
    SELECT $1::uuid, $2::text, $3::text, $4::bigint, $5::boolean, $6::bigint, now + $7::bigint FROM clock
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, version = excluded.version, started_at = excluded.started_at,
        takes_shards = excluded.takes_shards, skew_micros = excluded.skew_micros, lease_until = excluded.lease_until
    RETURNING id, name, version, started_at, takes_shards, skew_micros, lease_until
)
SELECT
    now, NULL::uuid AS id, NULL::text AS name, NULL::text AS version, NULL::bigint AS started_at,
    NULL::boolean AS takes_shards, NULL::bigint AS skew_micros, NULL::bigint AS lease_until,
    NULL::smallint AS shard, NULL::bigint AS epoch
FROM clock
UNION ALL
SELECT NULL, id, name, version, started_at, takes_shards, skew_micros, lease_until, NULL, NULL
FROM beat
WHERE lease_until > (SELECT now FROM clock)
UNION ALL
SELECT NULL, id, name, version, started_at, takes_shards, skew_micros, lease_until, NULL, NULL
FROM node
WHERE lease_until > (SELECT now FROM clock) AND id <> $1::uuid
UNION ALL
SELECT
    NULL, NULL::uuid AS id, NULL::text AS name, NULL::text AS version, NULL::bigint AS started_at,
    NULL::boolean AS takes_shards, NULL::bigint AS skew_micros, NULL::bigint AS lease_until,
    shard, epoch
FROM shard
WHERE owner = $1::uuid
