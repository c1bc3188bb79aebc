-- Locks what finished long ago, the oldest first. An outcome that is being revived is passed over;
-- one that is being purged is gone when the revival gets to it.
-- before, limit
SELECT id
FROM outcome
WHERE finished_at < ?
ORDER BY finished_at
LIMIT ?
FOR UPDATE SKIP LOCKED
