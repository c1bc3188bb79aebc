-- Ends a claim: the timer is pending again.
-- ?1 minute and ?2 id of the row, ?3 new minute, ?4 new time, ?5 its due time, if that is another,
-- ?6 attempt, ?7 error
UPDATE due
SET minute = ?3, at = ?4, execute_at = ?5, attempt = ?6, last_error = ?7,
    claim = NULL, epoch = NULL, lease_until = NULL
WHERE shard = 0 AND minute = ?1 AND id = ?2
