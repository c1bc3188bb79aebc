-- A timer that may be claimed: it is pending, or an earlier call with the same token has claimed
-- it.
-- ?1 minute and ?2 id of the row, ?3 due time, ?4 token, ?5 epoch
SELECT attempt, last_error, destination, claim, namespace
FROM due
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND at = ?3 AND (claim IS NULL OR (claim = ?4 AND epoch = ?5))
