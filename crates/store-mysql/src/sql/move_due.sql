-- Places a pending timer that is locked anew: attempts start over.
-- new due time, destination; shard, due time, id
UPDATE due
SET at = ?, destination = ?, attempt = 0, last_error = NULL
WHERE shard = ? AND at = ? AND id = ?
