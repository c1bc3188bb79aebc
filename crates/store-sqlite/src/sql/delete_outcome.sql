-- Removes what became of a timer.
-- ?1 minute of its due time, ?2 id
DELETE FROM outcome
WHERE minute = ?1 AND id = ?2
