-- Finds claims that their makers will not settle any more. A claimed row was due, so it lies in the
-- past; one minute more allows for a node whose clock runs ahead. Of each shard the rows after the
-- position in $3 and $4 are looked at, and the last one that may be is shown in any case: there the
-- next call goes on.
-- $1 shards, $2 epochs, $3 and $4 the time and the id after which each begins; $5 how many rows of
-- a shard are looked at
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), held AS MATERIALIZED (
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
), kept AS MATERIALIZED (
    -- The earlier shard leases whose owners live: what was claimed under those is still theirs.
    SELECT h.shard, h.epoch
    FROM held t
    JOIN tenure h ON h.shard = ANY (ARRAY[t.shard])
    JOIN node n ON n.id = ANY (ARRAY[h.node])
    WHERE n.lease_until > (SELECT now FROM clock)
)
SELECT c.shard, d.at, d.id, d.claim, c.epoch, d.is_last, d.is_left
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::uuid[]) AS c (shard, epoch, at, id)
CROSS JOIN LATERAL (
    SELECT
        w.at, w.id, w.claim, w.number = $5::bigint AS is_last,
        (w.claim IS NOT NULL
            AND (w.lease_until <= (SELECT now FROM clock)
                OR (w.epoch < c.epoch AND ((c.shard, w.epoch) IN (SELECT shard, epoch FROM kept)) IS NOT TRUE))) AS is_left
    FROM (
        SELECT due.at, due.id, due.claim, due.epoch, due.lease_until, row_number() OVER (ORDER BY due.at, due.id) AS number
        FROM due
        WHERE due.shard = c.shard AND (due.at, due.id) > (c.at, c.id)
            AND due.at <= (SELECT now + 60000000 FROM clock)
        ORDER BY due.at, due.id
        LIMIT $5::bigint
    ) w
) d
WHERE (d.is_last OR d.is_left) AND ((c.shard, c.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE
