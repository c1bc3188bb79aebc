-- Claims due timers and reads them along. A row that is changed while the statement runs is passed
-- over: it is reached once as the statement saw it when it began, and taken only if it is still
-- that very version: its ctid, and its xmin, because servers before the releases of November 2025
-- follow a changed row without comparing its ctid again. So it never comes with a definition that
-- is older than the row; a change of the definition of a pending timer changes its row as well.
-- $1 shards, $2 due times, $3 ids, $4 epochs, one of each for every entry; $5 token, $6 lease in
-- microseconds
WITH clock AS MATERIALIZED (
    -- The database's clock in microseconds. It runs on within a statement, so it is read once.
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), held AS MATERIALIZED (
    -- The current shard leases.
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
)
-- No column that an index names is changed, so the row stays on its page.
UPDATE due d
SET claim = $5::bigint, epoch = e.epoch, lease_until = (SELECT now FROM clock) + $6::bigint, attempt = d.attempt + 1
FROM (
    SELECT
        unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
        unnest($4::bigint[]) AS epoch
) AS e
-- IS TRUE keeps the subquery a hash table.
JOIN due seen
    ON seen.shard = ANY (ARRAY[e.shard]) AND seen.at = e.at AND seen.id = e.id AND seen.claim IS NULL
    AND ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE
LEFT JOIN definition f ON f.id = ANY (ARRAY[seen.id])
CROSS JOIN LATERAL (
    -- What is larger is claimed, but not read along: a thousand of the largest would be too much at
    -- once.
    SELECT (
        octet_length(f.callback_config) + coalesce(octet_length(f.metadata), 0) + coalesce(octet_length(f.options), 0)
        > 4096
    ) IS NOT TRUE AS is_small
) size
-- A claim waits briefly for a row that another session is changing, for all its neighbours wait
-- with it. The limit is set before the first row is looked at, and ends with the statement.
WHERE (SELECT set_config('lock_timeout', '200ms', true)) IS NOT NULL AND d.ctid = seen.ctid
    AND d.xmin = seen.xmin
RETURNING
    d.shard, d.epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim, size.is_small, f.namespace, f.key,
    f.asked, f.execute_at, CASE WHEN size.is_small THEN f.callback_config END AS callback_config,
    CASE WHEN size.is_small THEN f.metadata END AS metadata, f.correlation_id, f.retry_policy, f.delivery, f.revision,
    f.created_at, f.updated_at, f.options, f.group_name
