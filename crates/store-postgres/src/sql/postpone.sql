-- Records that claimed timers are tried again, or are due again. The definition follows only when
-- something it says has changed; its revision rises with a new due time.
-- $1 shards, $2 due times, $3 ids, $4 tokens, $5 places in the batch, $6 next due times, $7
-- attempts, $8 errors, $9 whether it is a new due time, $10 epochs
WITH held AS MATERIALIZED (
    -- The current shard leases.
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
), settled AS (
    UPDATE due d
    SET at = e.next_at, attempt = e.attempt, last_error = e.error,
        claim = NULL, epoch = NULL, lease_until = NULL
    FROM (
        SELECT
            unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
            unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::bigint[]) AS next_at,
            unnest($7::integer[]) AS attempt, unnest($8::text[]) AS error, unnest($9::boolean[]) AS again,
            unnest($10::bigint[]) AS epoch
    ) e
    WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
        AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
    RETURNING
        d.id, e.place, e.at, e.next_at, e.again
), followed AS (
    UPDATE definition f
    SET due_at = CASE WHEN s.again THEN NULL ELSE s.next_at END,
        execute_at = CASE WHEN s.again THEN s.next_at ELSE f.execute_at END,
        revision = f.revision + s.again::integer
    FROM settled s
    WHERE f.id = ANY (ARRAY[s.id]) AND (s.again OR s.next_at <> s.at)
)
SELECT place FROM settled
