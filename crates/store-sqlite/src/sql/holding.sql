-- Who holds a shard, and under which epoch.
-- ?1 shard
SELECT epoch, owner
FROM shard
WHERE shard = ?1
