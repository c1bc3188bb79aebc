-- How many timers of some namespaces are pending in each minute: one row for each minute that has
-- any timers, so that the reader can stop at any of them.
-- ?1 and ?2 the first minute and the one after the last, ?3 the namespaces as a JSON array
SELECT minute, sum(coalesce(namespace, 'default') IN (SELECT value FROM json_each(?3))) AS pending
FROM due
WHERE shard = 0 AND minute >= ?1 AND minute < ?2 AND claim IS NULL
GROUP BY minute
