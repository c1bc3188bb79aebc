-- Gives a shard to a node.
-- ?1 shard, ?2 epoch, ?3 node
UPDATE shard
SET epoch = ?2, owner = ?3
WHERE shard = ?1
