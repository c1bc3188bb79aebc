-- Locks the row in `paused` of one timer.
-- $1 id
SELECT at, attempt, last_error, paused_at, note
FROM paused
WHERE id = $1
FOR UPDATE
