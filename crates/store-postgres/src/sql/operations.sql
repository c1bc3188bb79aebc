-- The latest operations, or one of them.
-- $1 id of the one, or NULL, $2 the id before which they are, or NULL, $3 limit
SELECT
    id, key_id, by_name, work, filter, state, matched, expected_max, changed, skipped, errors, error,
    cursor_at, cursor_id, started_at, finished_at, epoch
FROM operation
WHERE ($1::uuid IS NULL OR id = $1) AND ($2::uuid IS NULL OR id < $2)
ORDER BY id DESC
LIMIT $3
