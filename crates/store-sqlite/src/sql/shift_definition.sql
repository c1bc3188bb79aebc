-- Gives a timer another due time than was asked for. What was asked stays: a repeated request is still known.
-- ?1 id, ?2 and ?3 the due time and its minute, ?4 now
UPDATE definition
SET execute_at = ?2, execute_minute = ?3, due_minute = ?3, revision = revision + 1, updated_at = ?4
WHERE id = ?1
