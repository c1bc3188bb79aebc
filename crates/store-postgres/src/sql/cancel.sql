-- Cancels one pending or paused timer. A row that moved while it was waited for no longer fits the
-- definition as this statement sees it, and is not found.
-- $1 id, $2 shard, $3 now
WITH gone AS (
    DELETE FROM due d
    WHERE d.shard = $2 AND d.at = (SELECT coalesce(f.due_at, f.execute_at) FROM definition f WHERE f.id = $1)
        AND d.id = $1 AND d.claim IS NULL
    RETURNING d.id, d.attempt, d.last_error
), unpaused AS (
    DELETE FROM paused p
    WHERE p.id = $1
    RETURNING p.id, p.attempt, p.last_error
)
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT id, 'canceled', attempt, last_error, NULL::bigint, $3::bigint FROM gone
UNION ALL
SELECT id, 'canceled', attempt, last_error, NULL::bigint, $3::bigint FROM unpaused
RETURNING attempt, last_error
