-- Makes a paused timer due; its row in `paused` is deleted in the same transaction.
-- ?1 minute and ?2 id of its row in `paused`, ?3 minute and ?4 time of its next attempt
INSERT INTO due (shard, minute, id, at, attempt, destination, last_error, execute_at, namespace, created_at)
SELECT 0, ?3, id, ?4, attempt, destination, last_error, nullif(execute_at, ?4), namespace, created_at
FROM paused
WHERE minute = ?1 AND id = ?2
