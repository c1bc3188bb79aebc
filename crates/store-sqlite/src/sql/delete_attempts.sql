-- Forgets all attempts of a timer.
-- ?1 id
DELETE FROM attempt
WHERE id = ?1
