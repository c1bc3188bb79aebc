-- Takes a timer out of `due`.
-- ?1 minute and ?2 id of the row
DELETE FROM due
WHERE shard = 0 AND minute = ?1 AND id = ?2
