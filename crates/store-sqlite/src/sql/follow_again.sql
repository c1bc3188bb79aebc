-- A new due time, which the receiver asked for; answers with the revision.
-- ?1 id, ?2 minute, ?3 due time
UPDATE definition
SET due_minute = ?2, execute_minute = ?2, execute_at = ?3, revision = revision + 1
WHERE id = ?1
RETURNING revision
