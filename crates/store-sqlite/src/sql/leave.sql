-- Gives all shards of a node back. Walks over the one row there is.
-- ?1 node
UPDATE shard
SET owner = NULL
WHERE owner = ?1
