-- Every shard. Walks over the one row there is.
SELECT shard, epoch, owner
FROM shard
ORDER BY shard
