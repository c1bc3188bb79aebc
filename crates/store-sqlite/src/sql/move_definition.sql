-- Gives a pending timer a new time, and leaves the rest of its definition as it is.
-- ?1 id, ?2 what was asked, ?3 and ?4 the due time and its minute, ?5 now, ?6 the options, among
-- which a time that is more than a number has its text
UPDATE definition
SET asked = ?2, execute_at = ?3, execute_minute = ?4, due_minute = ?4, revision = revision + 1, updated_at = ?5, options = ?6
WHERE id = ?1
