-- Puts a pending timer among the paused ones; its row in `due` is deleted in the same transaction.
-- ?1 minute and ?2 id of its row in `due`, ?3 minute of its due time, ?4 now, ?5 note
INSERT INTO paused (minute, id, execute_at, at, attempt, destination, paused_at, namespace, last_error, note, created_at)
SELECT ?3, id, coalesce(execute_at, at), at, attempt, destination, ?4, namespace, last_error, ?5, created_at
FROM due
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL
