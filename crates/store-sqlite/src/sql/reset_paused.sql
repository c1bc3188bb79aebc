-- A new due time for a paused timer: attempts start over. The destination stays unless a new one is
-- given.
-- ?1 minute and ?2 id of the row, ?3 new minute, ?4 new time, ?5 new destination or NULL, ?6
-- namespace
UPDATE paused
SET minute = ?3, execute_at = ?4, at = ?4, attempt = 0, last_error = NULL,
    destination = coalesce(?5, destination), namespace = ?6
WHERE minute = ?1 AND id = ?2
