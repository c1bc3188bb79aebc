-- Removes the outcome of one timer, which is locked.
-- id
DELETE FROM outcome
WHERE id = ?
