-- Locks the row in `outcome` of one timer.
-- id
SELECT status, attempt, last_error, executed_at, finished_at
FROM outcome
WHERE id = ?
FOR UPDATE
