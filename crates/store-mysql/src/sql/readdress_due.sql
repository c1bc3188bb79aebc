-- Leaves a pending timer that is locked waiting for the attempt that it waits for, or for its
-- expiry: beside that only its destination is another.
-- new due time, destination; shard, due time, id
UPDATE due
SET at = ?, destination = ?
WHERE shard = ? AND at = ? AND id = ?
