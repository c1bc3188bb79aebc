-- A timer that is due and not claimed.
-- ?1 minute and ?2 id of the row
SELECT attempt, coalesce(execute_at, at) AS execute_at, namespace, last_error, created_at
FROM due
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL
