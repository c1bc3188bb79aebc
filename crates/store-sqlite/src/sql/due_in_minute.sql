-- What is due in a part of one minute, in the order of ids, which the key has.
-- ?1 shard, ?2 minute, ?3 the id after which it begins, ?4 the last one, ?5 and ?6 from and until
SELECT at, id, destination
FROM due
WHERE shard = ?1 AND minute = ?2 AND id > ?3 AND id <= ?4 AND at >= ?5 AND at <= ?6 AND claim IS NULL
ORDER BY id
