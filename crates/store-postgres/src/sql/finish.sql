-- Records that claimed timers have ended: each row leaves `due` and appears in `outcome` in one
-- commit. Fails where an outcome is there already, which cannot be: to look for it each time would
-- cost more than a tenth.
-- $1 shards, $2 due times, $3 ids, $4 tokens, $5 places in the batch, $6 statuses, $7 errors, $8
-- when they ended, $9 epochs, $10 how many of the counted attempts were not started
WITH held AS MATERIALIZED (
    -- The current shard leases.
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
), settled AS (
    DELETE FROM due d
    USING (
        SELECT
            unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
            unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::text[]) AS status,
            unnest($7::text[]) AS error, unnest($8::bigint[]) AS finished_at, unnest($9::bigint[]) AS epoch,
            unnest($10::integer[]) AS unsent
    ) e
    WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
        AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
    RETURNING
        d.id, d.attempt - e.unsent AS attempt, e.place, e.status, e.error, e.finished_at
), kept AS (
    INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
    SELECT id, status, attempt, error, finished_at, finished_at FROM settled
)
SELECT place FROM settled
