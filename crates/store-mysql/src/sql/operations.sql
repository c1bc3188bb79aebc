-- The latest operations.
-- the id before which they are, limit
SELECT
    id, key_id, by_name, work, filter, state, matched, expected_max, changed, skipped, errors, error,
    cursor_at, cursor_id, started_at, finished_at, epoch
FROM operation
WHERE id < ?
ORDER BY id DESC
LIMIT ?
