-- When the first timer of a shard that is due and not claimed was due.
-- ?1 shard, ?2 the minute of now, ?3 now
SELECT at
FROM due
WHERE shard = ?1 AND minute <= ?2 AND at <= ?3 AND claim IS NULL
ORDER BY minute, at
LIMIT 1
