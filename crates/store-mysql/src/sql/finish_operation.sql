-- Ends a running operation.
-- state, error, now; id, epoch or NULL, epoch or NULL
UPDATE operation
SET state = ?, error = ?, finished_at = ?
WHERE id = ? AND state = 'running' AND (? IS NULL OR epoch = ?)
