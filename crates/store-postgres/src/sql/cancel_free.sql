-- Cancels many pending timers, each for a caller of its own. Passes over rows that another session
-- holds, so that no caller waits for what another one waits for. A row that moved since this
-- statement began is not found.
-- $1 ids, $2 shards, $3 now
WITH wanted AS MATERIALIZED (
    SELECT w.shard, coalesce(f.due_at, f.execute_at) AS at, w.id, w.now
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, now)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
), held AS MATERIALIZED (
    SELECT d.shard, d.at, d.id, d.attempt, d.last_error, w.now
    FROM wanted w
    JOIN due d ON d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
    WHERE d.claim IS NULL
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM due d
    USING held h
    WHERE d.shard = ANY (ARRAY[h.shard]) AND d.at = h.at AND d.id = h.id
    RETURNING d.id, h.attempt, h.last_error, h.now
)
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT id, 'canceled', attempt, last_error, NULL::bigint, now FROM gone
RETURNING id, attempt, last_error
