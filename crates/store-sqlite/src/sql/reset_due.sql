-- A new due time: attempts start over. The destination stays unless a new one is given.
-- ?1 minute and ?2 id of the row, ?3 new minute, ?4 new time, ?5 new destination or NULL, ?6
-- namespace
UPDATE due
SET minute = ?3, at = ?4, execute_at = NULL, attempt = 0, last_error = NULL,
    destination = coalesce(?5, destination), namespace = ?6
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL
