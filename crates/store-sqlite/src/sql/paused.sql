-- A paused timer.
-- ?1 minute and ?2 id of the row
SELECT attempt, execute_at, namespace, last_error, at
FROM paused
WHERE minute = ?1 AND id = ?2
