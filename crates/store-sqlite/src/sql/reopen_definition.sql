-- The next attempt is due at another time; `execute_at` stays.
-- ?1 id, ?2 the minute of the next attempt, ?3 now
UPDATE definition
SET due_minute = ?2, revision = revision + 1, updated_at = ?3
WHERE id = ?1
