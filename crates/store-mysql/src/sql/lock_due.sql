-- Locks the row in `due` of one timer. When the row was moved by a session that had to be waited
-- for, it is no longer where the definition had it, and nothing is found.
-- shard, id, id
SELECT at, claim IS NOT NULL AS claimed, attempt, last_error
FROM due
WHERE shard = ? AND id = ? AND at = (SELECT COALESCE(f.due_at, f.execute_at) FROM definition f WHERE f.id = ?)
FOR UPDATE
