-- Gives a paused timer that is locked another due time: attempts start over.
-- new due time, destination; id
UPDATE paused
SET at = ?, destination = ?, attempt = 0, last_error = NULL
WHERE id = ?
