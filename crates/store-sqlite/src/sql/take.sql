-- Claims a timer that was found by standing.sql in the same transaction.
-- ?1 minute and ?2 id of the row, ?3 token, ?4 epoch, ?5 until when the claim is leased, ?6 attempt
UPDATE due
SET claim = ?3, epoch = ?4, lease_until = ?5, attempt = ?6
WHERE shard = 0 AND minute = ?1 AND id = ?2
