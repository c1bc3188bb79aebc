-- Locks the row in `paused` of one timer.
-- id
SELECT at, attempt, last_error, paused_at, note
FROM paused
WHERE id = ?
FOR UPDATE
