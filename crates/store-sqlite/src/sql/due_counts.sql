-- How many timers are pending in each minute: one row for each minute that has any.
-- ?1 and ?2 the first minute and the one after the last
SELECT minute, count(*) AS pending
FROM due
WHERE shard = 0 AND minute >= ?1 AND minute < ?2 AND claim IS NULL
GROUP BY minute
