-- The next attempt is due in another minute.
-- ?1 id, ?2 minute
UPDATE definition
SET due_minute = ?2
WHERE id = ?1
