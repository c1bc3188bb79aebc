-- The claim, if it still stands. It must have been made under the shard lease of the settlement,
-- unless that is the current one.
-- ?1 minute and ?2 id of the row, ?3 due time, ?4 token, ?5 whether the shard lease is current, ?6
-- its epoch
SELECT attempt, coalesce(execute_at, at) AS execute_at, namespace, created_at
FROM due
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND claim = ?4 AND (?5 OR epoch = ?6)
