-- Raises the revision of a timer.
-- ?1 id, ?2 now
UPDATE definition
SET revision = revision + 1, updated_at = ?2
WHERE id = ?1
