-- Removes the definition of a timer.
-- ?1 id
DELETE FROM definition
WHERE id = ?1
