-- Claims due timers as they are once no other session changes them any more, for at most 200 ms
-- each.
-- $1 shards, $2 due times, $3 ids, $4 epochs, one of each for every entry; $5 token, $6 lease in
-- microseconds
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), held AS MATERIALIZED (
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
)
UPDATE due d
SET claim = $5::bigint, epoch = e.epoch, lease_until = (SELECT now FROM clock) + $6::bigint, attempt = d.attempt + 1
FROM (
    SELECT
        unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
        unnest($4::bigint[]) AS epoch
) AS e
WHERE (SELECT set_config('lock_timeout', '200ms', true)) IS NOT NULL
    AND d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim IS NULL
    AND ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE
