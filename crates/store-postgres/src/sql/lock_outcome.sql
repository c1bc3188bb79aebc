-- Locks the row in `outcome` of one timer.
-- $1 id
SELECT status, attempt, last_error, executed_at, finished_at
FROM outcome
WHERE id = $1
FOR UPDATE
