-- What a node holds. Walks over the one row there is.
-- ?1 node
SELECT shard, epoch
FROM shard
WHERE owner = ?1
ORDER BY shard
