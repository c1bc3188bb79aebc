-- Locks the row in `due` of one timer. When the row was moved by a session that had to be waited
-- for, it no longer fits the definition as this statement sees it, and nothing is found.
-- $1 id, $2 shard
SELECT d.at, d.claim IS NOT NULL AS claimed, d.attempt, d.last_error
FROM due d
WHERE d.shard = $2 AND d.at = (SELECT coalesce(f.due_at, f.execute_at) FROM definition f WHERE f.id = $1) AND d.id = $1
FOR UPDATE
