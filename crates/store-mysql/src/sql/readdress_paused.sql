-- Leaves the next attempt of a paused timer that is locked when it was: only its destination is
-- another.
-- destination; id
UPDATE paused
SET destination = ?
WHERE id = ?
