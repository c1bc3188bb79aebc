-- Ends a running operation.
-- ?1 id, ?2 epoch or NULL, ?3 state, ?4 error, ?5 now
UPDATE operation
SET state = ?3, error = ?4, finished_at = ?5
WHERE id = ?1 AND state = 'running' AND (?2 IS NULL OR epoch = ?2)
