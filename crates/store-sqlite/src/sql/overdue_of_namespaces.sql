-- What is overdue and not claimed, minute by minute.
-- ?1 the minute of now, ?2 now
SELECT at, namespace
FROM due
WHERE shard = 0 AND minute <= ?1 AND at <= ?2 AND claim IS NULL
ORDER BY minute
