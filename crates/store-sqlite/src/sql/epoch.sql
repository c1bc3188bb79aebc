-- The current epoch of a shard.
-- ?1 shard
SELECT epoch
FROM shard
WHERE shard = ?1
