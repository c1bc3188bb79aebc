-- Cancels many pending or paused timers. Takes the rows in the order of their key, as claims and
-- settlements do, so that no two statements wait for each other in a circle. A row that moved while
-- it was waited for no longer fits what was looked up, and is not found.
-- $1 ids, $2 shards, $3 now
WITH wanted AS MATERIALIZED (
    SELECT w.shard, coalesce(f.due_at, f.execute_at) AS at, w.id
    FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
    ORDER BY w.shard, at, w.id
), gone AS (
    DELETE FROM due d
    USING wanted w
    WHERE d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id AND d.claim IS NULL
    RETURNING d.id, d.attempt, d.last_error
), unpaused AS (
    DELETE FROM paused p
    USING wanted w
    WHERE p.id = ANY (ARRAY[w.id])
    RETURNING p.id, p.attempt, p.last_error
)
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT id, 'canceled', attempt, last_error, NULL::bigint, $3::bigint FROM gone
UNION ALL
SELECT id, 'canceled', attempt, last_error, NULL::bigint, $3::bigint FROM unpaused
RETURNING id
