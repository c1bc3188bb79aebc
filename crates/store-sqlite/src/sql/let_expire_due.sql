-- The next attempt of a pending timer is due at another time, with the reason for which its claim lets
-- it expire. Its own due time stays.
-- ?1 minute and ?2 id of the row, ?3 new minute, ?4 new time, ?5 reason
UPDATE due
SET minute = ?3, at = ?4, execute_at = nullif(coalesce(execute_at, at), ?4), last_error = ?5
WHERE shard = 0 AND minute = ?1 AND id = ?2 AND claim IS NULL
