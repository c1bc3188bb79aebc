-- The nodes and the shards, in rows of three kinds: one with the time and the oldest timer that is
-- overdue, one for each node, one for each shard. The first timer of each shard is found by the
-- key, which has them in the order in which they are due.
-- $1 for how many microseconds a dead node is still shown
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
)
SELECT
    now,
    (
        SELECT min(first.at)
        FROM shard s
        CROSS JOIN LATERAL (
            SELECT d.at
            FROM due d
            WHERE d.shard = s.shard AND d.at <= (SELECT now FROM clock) AND d.claim IS NULL
            ORDER BY d.at
            LIMIT 1
        ) first
    ) AS overdue,
    NULL::uuid AS id, NULL::text AS name, NULL::text AS version, NULL::bigint AS started_at,
    NULL::boolean AS takes_shards, NULL::bigint AS skew_micros, NULL::bigint AS lease_until,
    NULL::smallint AS shard, NULL::bigint AS epoch, NULL::uuid AS owner
FROM clock
UNION ALL
SELECT NULL, NULL, id, name, version, started_at, takes_shards, skew_micros, lease_until, NULL, NULL, NULL
FROM node
WHERE lease_until > (SELECT now FROM clock) - $1::bigint
UNION ALL
SELECT
    NULL, NULL, NULL::uuid AS id, NULL::text AS name, NULL::text AS version, NULL::bigint AS started_at,
    NULL::boolean AS takes_shards, NULL::bigint AS skew_micros, NULL::bigint AS lease_until,
    shard, epoch, owner
FROM shard
