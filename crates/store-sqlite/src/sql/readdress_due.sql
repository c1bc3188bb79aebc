-- The next attempt stays when it was, and goes where the new callback says.
-- ?1 minute and ?2 id of the row, ?3 destination, ?4 namespace
UPDATE due
SET destination = ?3, namespace = ?4
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL
