-- Ends timers that are pending or paused, and locked.
-- $1 ids, $2 shards, $3 when their next attempts are due, $4 status, $5 error, if there is one, $6 now
WITH gone AS (
    DELETE FROM due d
    USING unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, at)
    WHERE d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
    RETURNING d.id, d.attempt, d.last_error
), unpaused AS (
    DELETE FROM paused p
    USING unnest($1::uuid[]) AS w (id)
    WHERE p.id = ANY (ARRAY[w.id])
    RETURNING p.id, p.attempt, p.last_error
)
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT id, $4::text, attempt, coalesce($5::text, last_error), NULL::bigint, $6::bigint FROM gone
UNION ALL
SELECT id, $4::text, attempt, coalesce($5::text, last_error), NULL::bigint, $6::bigint FROM unpaused
