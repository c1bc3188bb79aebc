-- What is due, in the order of the key: by minute and id. The order of times inside a minute is made
-- in memory. Most rows of the last minute are not due yet: their time is looked at first, because it
-- stands further in front.
-- ?1 shard, ?2 and ?3 the first and the last minute, ?4 until
SELECT minute, at, id, destination
FROM due
WHERE shard = ?1 AND minute >= ?2 AND minute <= ?3 AND at <= ?4 AND claim IS NULL
ORDER BY minute, id
