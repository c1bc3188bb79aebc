-- A retry that is due later than this becomes due at this time. Only what waits for a retry has an
-- execute_at of its own.
-- ?1 minute and ?2 id of the row, ?3 new minute, ?4 new time
UPDATE due
SET minute = ?3, at = ?4
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL AND execute_at IS NOT NULL AND at > ?4
